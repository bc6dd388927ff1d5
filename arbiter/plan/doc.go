// Package plan decides for the leader of the control plane what is to be done: which views come next, which copies are
// sealed for that, which primaries hand over, and who votes. It is pure: [Planner.Step] takes what the leader knows and gives
// what it should do; no I/O, no clock, no goroutine, no random number, and every list is sorted.
//
// # What a caller must do
//
//  1. Call Step when something has happened (a report, another State, a node that came or went) and when Output.Next says
//     so. Read State first, then the leases, then the time; a node that is barred is one for which the arbiter has known of the
//     bar since before its lease was read.
//  2. Carry the Output out: the bar first (it replaces the one before), then propose the views as one command with
//     Output.Term, which takes effect as an entry of that term of Raft or not at all (core.Condition.Term), then send the orders.
//     Each may get lost: what is needed is given again every 100 ms.
//  3. Give no lease to a node that is barred, not registered, or registered with another raft ID or life. A lease of a later term
//     has a change ID behind all entries of this one that will ever count (arbiter/core).
//  4. Pass every report of a sealed copy to the next Step, once. A node answers a seal order for epoch 0 with what its copy
//     is, without sealing it. It does not answer for a copy that it does not have yet (shared: Doubling).
//
// What the planner remembers is soft: a new leader begins with nothing, and asks the copies whether they are sealed.
//
// # When a bucket may be taken from its primary
//
// Claim: when the planner asks for a view with another primary, the old one answers nothing any more, nor will it under any
// view before that one.
//
// An old primary is silent if its copy has reported that it is sealed for its epoch; that is in its journal. Or if its node
// holds no lease: this leader knows every lease of its term, and a lease of an earlier term has ended at TakeFrom. But a
// node without one may get one between this decision and the commit, with a change ID before it, and act under the old view
// while the new primary acts too. So a node is barred first, and the view is asked for only when the arbiter has said that
// the bar holds and the lease, read after that, has ended. The bar stays until State has the next view; a lease that is
// granted then comes with a change ID that includes it. Once asked for, a view may be committed at any time, so it is asked
// for until it is, and the bar with it, whatever happens meanwhile. If the leader changes before, what it asked for counts only
// if it is in the next leader's log already, as an entry of the old term; every lease of the new term has a ReadIndex of that term,
// which is behind all entries of older ones. So no bar has to outlive its leader, and no lease has to wait until State.Term is
// the new term (shared.Lead), which is the same condition again, for the state itself.
//
// Two primaries of one bucket would need two views; each has an epoch of its own, so one of the two is older, and it was
// silent before the other was asked for. A view that a primary asks for itself has itself as its head, or is a hand-over for
// which it has sealed itself. [TestNeverTwoPrimaries]
//
// Nothing that was answered is lost, because the next view is made by chain.Takeover from reports of sealed members; and the
// argument for that is in bucket/chain. Only reports of nodes that are alive are used, since one of them becomes primary.
// Copies that are alive and have not reported are waited for 20 ms, so that they keep their places in the chain. Who is later than that, or
// comes up only then, is not in the view, sealed or not, and joins again behind it: with first and all the set may then be the new primary
// alone, though others of the old one have as much. That undoes nothing, since who is in a set has what the set before has
// answered, and who is not is never counted; it is told as degraded. What it costs is a copy for as long as joining takes, which is a
// comparison of ends for a copy that is not old. To name the late in the view would not help: who has not told its end cannot be in the set
// (but for a majority, where they stay and a part of them is enough), and to wait for longer would stop every bucket of
// a dead node for as long as another one is slow. [bucket/chain: Takeover]
//
// A takeover begins only when so many of the in-sync set are alive that it can end. Otherwise sealing would only do harm: the
// old primary may come back, and goes on as if nothing had been. Whoever seals owes the next view: once an order was sent the
// planner goes on to the end, and if the old primary has its lease again meanwhile, it is sealed too, and is among those who may
// be primary. A primary that has sealed itself brings its own next view (hand-over); if none comes within 200 ms, or at once if
// it has failed, the planner brings one. The same for a chain with another sealed member, after 2 s.
//
// A copy that is not in the chain may be sealed for its epoch too: a leader that prepared a recovery asks everybody, and when
// it is gone and the primary has its lease back, nobody else remembers. Such a copy cannot join before the next view, and a
// primary that is alone has no cause to ask for one: the bucket would keep one copy for ever. So the nodes that should have a
// copy and are not in the chain are asked as well, and when one of them tells that it is sealed for the newest epoch while the
// primary is alive, the planner owes the next view, after 2 s. It is brought in no other way than any that it owes: the chain
// is sealed, the primary too, and chain.Takeover makes the view of what those have reported who are of the in-sync set. What the
// copy outside reports never counts for that. So nothing that is said here of two primaries and of what was answered changes, and
// the one thing that does is that a view is brought earlier than somebody else might have caused it. It ends: the next view is
// newer than what the copy is sealed for. While the primary is away nothing is begun for such a copy, for then it
// hinders nobody, and sealing would keep a primary that comes back from going on. [testdata/golden/outside.txt]
//
// # Recovery
//
// If too few of the in-sync set are left for a takeover, the bucket goes on with the newest copy that there is, by
// chain.Recover. Only if enough reports can never come: all but too few of the set do not exist any more (the node was removed,
// or has a new life; the copy was thrown away), have failed, or are on nodes that are lost: without a lease for give_up (10 s)
// after its end. A copy that has reported counts as long as its node is alive, and for give_up after it has reported; not for
// ever: only a copy on a node that is alive can be primary, so with its node lost for good its report makes no takeover, and the
// bucket would wait until another node leads. It is sealed, and stays silent under that view if it does come back; if it comes back
// before the recovery was asked for, its report is used as it would have been. And no member of the set can act: each has sealed
// itself, or has no lease and is barred. Then every node that is alive is asked, and waited for up to 200 ms. If nobody has a copy,
// the view stays. Who comes back when the recovery was asked for already comes too late, though the view may not be committed
// yet. [testdata/golden/lost.txt, TestNodesThatNeverComeBack]
//
// When all nodes were down, every copy comes back with its journal and is the same member, so nothing is recovered: who gets
// its lease first goes on, and who is late by more than a lease is taken over from, by a member of its in-sync set. Only a bucket
// of which the whole in-sync set stays away for TakeFrom and give_up is recovered; give_up can be set higher where people
// start machines one by one. In memory, without journals, every copy is gone after that, which is what the view then says.
//
// # First views
//
// A bucket without a view gets one of a single copy, on the node with the fewest primaries; the others join by themselves.
//
// # Balance
//
// Primaries are on nodes that are alive and regular; on those of priority 15 if there is no other, then on draining ones, then
// on those about to stop. Hand-overs, at most 16 at a time, go to members of the chain: first away from nodes that should have
// none, and to where people have pinned a bucket; then from the node with the most to the one with the fewest as long as they
// differ by two. Each such move makes the sum of squares smaller and a difference of one stays, so it ends and does not come
// back. A node is given something only after it was alive for 3 s (if any such is there), and nothing is evened out in the
// first 3 s of a leader. How many copies of a bucket there may be in one location is not looked at yet; [Score] prefers a
// first secondary that is far from the primary.
//
// # The Raft group
//
// Every registered node is a member, removed ones are not. The number of voters is the setting (5), or the greatest odd
// number of nodes below it: an even number needs one more to decide and survives no more losses. So of two nodes one votes:
// the other may stop, die and restart without anybody noticing, and a voter that stops in good order passes its vote on
// first; two voters would stop at each restart of any. What it costs: if the one voter's disk is lost, the last changes may
// be lost with it, and the other cannot go on by itself (the pair protocol of the design would be for that). From one to three
// it goes only when two are ready. A voter that is away for 30 s is replaced by a learner that is alive, if there is one;
// so is a leader whose node was removed, which goes on leading until it has a successor (the last voter may be removed). If no voter and no
// learner could be that, it takes registered nodes into the group, and nothing else: no decision waits for a learner.
// Nobody's vote is taken as long as too few of the others are heard of to decide without it: another one's is taken or given first, and
// a removed node stays until then (broker/control/enrol).
// Among the voters the one with the lowest priority number leads; arbiters, draining nodes and those about to stop lead
// only if nobody else does.
//
// Reading order: input.go; planner.go, scene.go; take.go, first.go, probe.go; balance.go; members.go; score.go.
package plan
