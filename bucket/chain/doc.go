// Package chain replicates the changes of one bucket along its chain: a pure state machine, one [Replica] for each copy.
//
// Same state and same inputs give the same outputs: the package performs no I/O, reads no clock, starts no goroutine and
// draws no random number. It carries changes whose bytes it does not look into, and knows nothing of locks. What follows is
// first the words, then what a caller has to do, then the argument; the tests named in brackets fail if it is wrong.
//
// # Words
//
// A [Member] is a copy: a node and its incarnation. A copy that lost its state, or threw it away, has another incarnation,
// so it is another member, and whatever was said of the old one is not said of it.
//
// A [Change] is (epoch, seq, hash of the one before, bytes); its own hash is over all of that, so it stands for the whole
// history up to it. A change keeps the epoch in which it was proposed.
//
// A [View] is committed by the control plane: an epoch, the chain in its order, how many members from its head are the
// in-sync set, and the recovery flag. There is one view for each epoch: the next one is committed by compare-and-set. The
// head of the chain is the primary. The in-sync set is a head of the chain, which loses nothing (the members of which
// answers need something may as well come first) and means that no member that counts hangs on one that does not.
//
// An epoch, with a primary, is one uninterrupted life of it. One life can go on over many epochs, if each view follows the
// one before and it was not sealed between; a primary that is restarted, be it with all its state, asks for a new epoch
// before it does anything.
//
// # What a caller must do
//
//  1. Feed inputs, in any number: [Replica.Receive], [Replica.Propose], [Replica.Install], [Replica.Grant],
//     [Replica.Applied], [Replica.Seal] and the others, with [Replica.Tick] before the first input of a turn. When
//     [Replica.Next] says so, Tick and Ready are due without any input; a copy with nothing to do needs neither.
//  2. Call [Replica.Ready] and carry out its [Output] from the top to the bottom before the next call. What has to be in the
//     journal is before what is sent: a member confirms nothing that it would not have after a restart.
//  3. Install every view in the order in which the control plane committed them, and call Applied with the change ID after
//     each; before it, SetRecovery if that has changed. Grant has the change ID that the lease came with; the copy acts under it only once Applied has reached that.
//  4. Give an incarnation that never was to a copy whose journal may be incomplete. Store Output.State and give it back.
//  5. A primary's table is ahead of what is confirmed; everybody else's is a beginning of it. After Output.Promoted the
//     table has everything and proposes a change at once. After Demoted it may be ahead of the history; if it turns out to
//     be, an Output has Discard or Restore.
//
// Reading order: view.go, change.go, log.go (the nouns); replica.go, output.go (inputs and outputs); ready.go (one round);
// time.go (what is due when); install.go (a new view); upstream.go, downstream.go, repeat.go, snapshot.go (the two ends of a
// link), given.go (lists that are used again); join.go; lead.go (the rule of answers); plan.go, handover.go (what a primary asks of the control plane);
// takeover.go (what the control plane decides with); fork.go; message.go, wire.go.
//
// # Links
//
// Each member gets changes from the one before it and passes them on to the one after it. Under every new view a link
// begins anew: the lower end says where its history ends (Hello), the upper end finds the newest point that both have and
// sends what follows. Equal points mean equal histories, so this is one comparison, not a search. An upper end passes on
// only what it has itself compared with its own upper end in this epoch, so by induction from the head what a member has
// *verified* in an epoch is the primary's history and nothing else. Only that is confirmed.
//
// What a member has beyond what it has verified is from older epochs. It stays, since it may be the only copy of something,
// until a different change comes for its place: then it is replaced. What its own table has is never replaced that way: a
// member whose table is ahead (it was primary) or whose confirmed history is another one (a recovery went on without it)
// needs a new beginning. If others may rely on it, because it is of the in-sync set, it first asks to be dropped, and only
// a committed view without it lets it throw anything away. So does a copy that is not of the set, but has confirmed something
// under the present view: the next one may count it. A primary therefore begins anew with what it knows of those that do
// not count, with every view. One thing a copy may always do is to take a snapshot of more than it has: whatever was
// answered and is here is in that too. [TestNothingIsThrownAwayWhileItMayCount, TestASnapshotOfLess]
//
// Confirmations go up with every message: a list of who below has verified how much, so that the first entry is "received
// and in the journal" and the last one "has reached the tail" (the metric of the time to sync). How far things are confirmed
// goes down with the changes, and who was told says so. Lost messages are repeated from what was last confirmed; duplicates
// and messages that overtake each other say nothing new, because every one names the point that it follows. Windows bound
// what is on its way; what waits for confirmation is bounded by Limits.Pending, and Propose tells with ErrFull.
//
// # What is answered when
//
// The primary may answer what depends on change s if the acknowledgement rule is met: of the members of the in-sync set, as
// many as [Acks] asks for have verified s in this primary's life. With First and All these are all of the set (with First it
// has at most two), with Majority more than half. And:
//
//   - While it has asked for another view, the rule must be met in both sets. It asks for one at a time.
//   - Changes from before its takeover are confirmed only together with one of its own (Raft, section 5.4.2).
//   - Its node holds a lease, and the change under which that was granted is applied here.
//   - It is not sealed for this epoch, and has not heard of a newer one.
//
// In-sync set {primary} means that it answers alone: Status.Degraded tells so.
//
// # Why an answered change survives
//
// Claim: at any time, as many members of the in-sync set of the newest committed view have every answered change, in the
// same place, as the rule asks for in that set. Call that covered. Then a takeover finds it: it hears of so many sealed
// members (one more than the rule can miss) that one of them has it.
//
// Answering keeps the claim, by the rule itself: "verified" is the primary's own history, and a member keeps what it has
// verified in an epoch, for it replaces only what it has not verified, and throws things away only after a view without it,
// or for a snapshot of more.
//
// A new view proposed by the primary keeps it. It proposes set N while O is committed only if everything that may have been
// answered is covered in N already: with First and All every newcomer has verified it (the old ones have it by the claim),
// with Majority it counts verified members of N, or N is O in another order. What may have been answered is what it has
// confirmed and all that it had when it took over. From then on it answers only what is covered in O and in N, so whichever
// is committed, the claim holds.
//
// A takeover keeps it. With First and All every member of O has every answered change, so each single one, and each set of
// them, covers it. With Majority the set stays O, where it is covered already. The new primary is the member with the newest
// end among the sealed ones, by (epoch, seq) of its last change. It has every answered change x: let the life that confirmed
// x have done so with its own change c at or after x (that is what the second rule above is for). One of the sealed members
// has c. A history that ends newer than c either ends with a change of the same life, and then c is before it, or with one
// of a later life, whose primary had x when it took over, by this same argument, and whose followers' histories are its own.
// The sealed members add nothing under the old view any more, so what they report is what there is. What the new primary
// has beyond answered changes becomes history too: it may be what a client was told a moment ago.
//
// So with First one failure loses nothing, with All any that leave one of the set, with Majority any that leave more than
// half. When fewer are left, Takeover refuses, and only [Recover] goes on, which says so in the view.
// [TestNothingAnsweredIsLost, testdata/takeover.txt, testdata/majority.txt]
//
// # Why no two primaries answer in one epoch, nor an old one beside a new one
//
// An epoch has one view, a view one head, and a head acts in an epoch only in one life: it takes over in the epoch whose
// view it has not seen before, and State.Epoch is in its journal before it does anything. A newer primary is committed only
// when the old one is sealed (it said so, and its journal has it) or its node's lease has ended; a fresh lease counts only
// when the views before it are applied. That answers need others, who are sealed or have gone on to the new view, holds
// beside it and needs no clock, except when the primary answers alone. Whoever hears of a newer epoch stops; whoever
// hears from an older one says Stale, and only that sender stops. [testdata/stale.txt, testdata/lease.txt]
//
// # Who is dropped, and when
//
// A primary asks for a view without a member that asks for it itself, that the control plane takes for dead, or that has
// made no progress for Limits.Drop though there was something to have; of the latter only the first in the chain, since all
// after it depend on it. With Majority a view without it may not be safe yet; then it goes to the end of the set, and the
// next one has its time. A member that had its time stays bad until it makes progress: so after each has had it once, the
// set is the primary and those who have everything, and that is always safe. [testdata/stuck.txt, testdata/progress.txt]
//
// # What sealing means
//
// A copy sealed for epoch e never again takes, confirms, passes on or answers anything under a view of epoch e or before,
// and its journal has that before it says so. It ends with the next view; who seals therefore owes one, be it the same view
// again. A planned hand-over is a primary that waits until its successor has all it has, seals itself and asks for the
// view; no lease has to end, and what was waiting comes along. What was confirmed by the same Ready is still answered
// (Output.Parting): it was so before the seal, and nobody else is primary before the view. [testdata/handover.txt]
//
// # What a returning node may count for
//
// With its journal complete it is the same member: what it confirmed it still has, so it counts for that, and everything
// that it says under a new view it has compared first. With anything less it is another member, in no set; the primary
// puts it into one when it has verified all that may have been answered. A copy that finds itself damaged reports Failed
// and is not used for a takeover. Nothing is ever dropped by the one who has it: the primary asks for a view without it, and
// never for one without itself. [testdata/returning.txt, testdata/damage.txt]
//
// # Damage
//
// Every member checks the hash of each change that comes in. If it is wrong, or there was another one in that place in this
// epoch, the member asks for that change once more, with a number, so that a duplicate is not taken for an answer; and its
// upper end looks at its own memory. Whoever is found damaged raises an alert, confirms nothing any more, and asks to be
// dropped; after the view without it, it has a new incarnation, throws everything away and joins at the tail. A primary
// seals itself instead. The network's own damage never gets that far: messages have a sum.
//
// # Recovery
//
// A view with the recovery flag was committed though too few of the old in-sync set were left. Output.Recovering tells the
// primary that nothing may be granted; after that time (SetRecovery) it asks for the same view without the flag, and it is the
// commit that ends it. A takeover inside it keeps the flag and starts the time anew. [testdata/recovery.txt]
//
// # Sources
//
// van Renesse and Schneider, Chain Replication (OSDI 2004): the chain and its induction. Lamport, Malkhi and Zhou, Vertical
// Paxos and Primary-Backup Replication (PODC 2009): views from a configuration master, sealing. Terrace and Freedman, CRAQ
// (ATC 2009): joining at the tail. Ongaro and Ousterhout, Raft (ATC 2014): newest by (epoch, seq), and 5.4.2. Seed 000,
// "Cascading secondaries" and "Preferred Secondary": the two confirmations, and the way of joining.
package chain
