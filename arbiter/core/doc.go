// Package core is one member of the control plane's group, pure: Raft, the leases of nodes, the steps of membership, who is
// preferred as leader.
//
// It performs no I/O, reads no clock, starts no goroutine and draws no random number. The Raft is go.etcd.io/raft/v3, used through its
// RawNode. Read on in this order: the words, what a caller must do, the argument for the leases. Files: config.go, output.go, node.go
// (inputs), ready.go (outputs), shell.go (a turn), step.go (what is taken from the network), elect.go, propose.go with envelope.go and seen.go,
// lead.go, lease.go, read.go, member.go, prefer.go, snapshot.go with storage.go, wire.go with parts.go, status.go.
//
// # Words
//
// A raft ID is a random number made with the store. Whoever loses the store has another one, so it never votes twice, and
// never confirms what it does not have. A life is one process on one store. A member is a voter or a learner. A node number
// is what a member asks for leases under; it comes from the shared configuration. A change ID is the log's index of a
// command; a node's change is that of the last command it has applied, which may be less than the last index: Raft has
// entries of its own.
//
// # What a caller must do
//
//  1. In each turn: take what has come, then read the clock, then call [Node.Turn] with both and with a [Shell] that carries out. A
//     leader counts its term and what it grants from that time, so it must not lie before the arrival of what it is told in the
//     turn. When a node begins, call [Node.CarryOut] before the first turn. Both stop for good with an error.
//  2. What they do, while [Node.HasReady]: call [Node.Ready], carry the Output out from the top to the bottom, call [Node.Advance].
//     Persist is on the disk, in one transaction, before a message is sent or a command applied: a vote or a confirmation that a
//     restart forgets breaks Raft. If it cannot be stored, nothing is begun any more.
//  3. Apply commands in their order, then end what Done and Reads name, then tell Events. A lease (Granted) comes after the
//     commands that it relies on; so whoever acts on it must have been told of them before.
//  4. When [Node.Next] says so, begin a turn without an input. A follower of a lively leader and a leader without others
//     are never woken for nothing.
//
// # Who may act until when
//
// A member asks the leader for a lease every Renew. It notes the time s of its own sending. The leader begins a ReadIndex
// after the ask has arrived, and when a majority has confirmed it, answers with the index r of that ReadIndex and the length
// L. The member may act until s + 3/4 L by its own clock, once it has applied r. The leader notes that the lease ends at
// g + L by its clock, g being the time of its answer, and never moves that back.
//
// Since s comes before g, the member stops before the leader counts the lease as ended, as long as their clocks' rates
// differ by less than a third (the product promises a seventh). Offsets do not matter: each counts by its own clock. An
// answer that is late, or comes twice, or belongs to an ask before another, is worth its own s only. The numbers of asks have the
// life in them: a process that was started again never counts an answer to its predecessor from a sending of its own.
// [TestNothingForbiddenHappens, TestLateAnswer]
//
// # Why no two nodes ever both think that they may be the one
//
// Let node X be the one (the primary of a bucket, say) by the applied commands, and let another one, Y, become it through a
// command c that is committed because X's lease has ended. X must not act after Y begins to. A lease of X at that time was granted
// by the leader l that proposed c, or by an older leader, or by a newer one, before or after c.
//
// By an older leader: let l's term be T, and let it have begun to lead at time e. A lease that was granted in an older term
// relies on a ReadIndex that a majority confirmed in that term, after the ask arrived. One of that majority voted for l (the
// groups of one membership overlap, and memberships that differ by one member do too), and it confirmed before it voted,
// since afterwards it was in term T and would have refused. So s < e, and the lease ends before e + L by l's clock: that is
// TakeFrom, and l takes nothing before. This holds for every term alike. It holds after a transfer of leadership, which asks nobody
// whether the old leader still grants; the table of leases is therefore not carried over. It holds for a voter that was
// started again, since its vote is on the disk. CheckQuorum is not part of it. A paused leader that wakes up can grant nothing, since
// its ReadIndex finds no majority, and commit nothing. [TestNewLeaderWaits]
//
// By l itself: c names X in Condition.Ended. l proposes it only when TakeFrom and the end of X's lease have passed, and from then
// on grants X nothing until c is applied, and then only with an index r at or after c. If X acts under such a lease it has applied c,
// and is not the one. A ReadIndex that was begun before c was applied has a lower index and is not used. [TestFence]
//
// By a newer leader l', of term T': its ReadIndex waits until an entry of T' is committed. If c is in the log of l', it is before
// that entry, so every r of l' is after c. If it is not, c is lost for ever: c has the condition that it counts as an entry of T only,
// so nobody repeats it in a later term. Without that condition it would be wrong: l would pass its old decision on to l',
// while X has a lease of l'. That is what Condition.Term is for. [TestOldDecisionDies]
//
// The leader's own node gets its leases in the same way; a leader that cannot reach a majority loses its own. A single voter
// needs no majority but itself; it too waits TakeFrom after a restart, for the learners' sake, and begins no ReadIndex
// before an entry of its term is applied (Raft would tell a single voter an index that is too low).
//
// # What is refused a lease
//
// Who is no member, whom Config.MayLease refuses, and who has another digest than the leader at the same change: its state
// has come apart, and it must do nothing (Quarantine). If most voters differ from the leader, it is the leader that has: it gives
// nobody a lease, and the leadership to one of them. [TestTheLeaderHasComeApart] Who is behind is not refused, since it does not act before it has
// applied r.
//
// # Proposals
//
// A proposal is in an envelope: proposer, life, number, and for those with a condition the term. It is repeated, to
// whoever leads, until it is applied. All members keep, as part of the replicated state, which numbers they have seen of each
// proposer (the newest 1,024): the first one counts. So it takes effect at most once however often it is in the log. Proposals of
// members that were removed, or of an earlier life than was seen, do not count. A proposal with a condition is handed to Raft
// once, and its place in the log is watched: if something else is committed there, it is Refused. [TestRepeatedProposalCountsOnce]
// A store that is a copy from before such a life can lead, and decide nothing; so it gives way to another voter. [TestALeaderWithAnOldStore]
//
// Raft takes proposals of others from the member itself only; a node passes nothing on for a third one.
//
// # Membership
//
// One step at a time, proposed by the leader: a learner, which becomes a voter when it is caught up, is there, and a majority
// of the voters would be there with it; a removal likewise must leave a majority that is there. The library applies a change when
// it is committed; a ReadIndex that is under way is begun anew then, since a leader that is left alone is answered by nobody.
// [TestTheLastVoterAnswers] The leader does not remove itself. A snapshot from before the last change is never sent: a new member would not
// find itself in it.
//
// # Elections
//
// PreVote and CheckQuorum are on. Raft's timer of followers is never advanced (only a leader's RawNode is ticked), for two
// reasons: it draws its timeout from crypto/rand, which a simulator could not repeat; and nobody has to wake up for it. Instead
// a follower forgets its leader (so that it votes for others) after Election of silence, and stands within another Election, spread
// by a hash of raft ID, term and attempt. So a simulator needs nothing but its own network and clocks: the same inputs give the same
// outputs. What the library still draws from crypto/rand is never used.
//
// If the transport says that the connection to the leader has closed, a follower forgets it at once, and the voters stand one after
// the other in the order of preference, half a heartbeat apart, until somebody leads. Whoever has not heard of it yet refuses to vote,
// so it is tried again quickly, for the time of one Election.
//
// Priorities: the leader hands over to the best voter that is better than itself, has everything committed, and has been
// so for ten times Election; pauses between attempts double from 2 s to a minute. 15 stands later than others. A reluctant
// node (an arbiter that has no daemon) never stands by itself; only after it refused a candidate for its shorter log, and
// nobody led for an Election, it does, because nobody else may have what it has; once it leads it hands over to anybody.
//
// # What a caller sees as failure
//
// A message that no correct member sends is refused and changes nothing. A state that Raft calls impossible (the store has lost what
// was confirmed, say) makes the node fail: Err, and nothing goes on. [TestAStoreOlderThanWhatItConfirmed] A member whose log has parted from the leader's within what was
// decided (an old store took part in an election) hears of nothing more, and is asked no more than with each heartbeat. [TestALogThatHasParted]
//
// # Sources
//
// Ongaro, Consensus (2014): PreVote 9.6, transfer 3.10, single-server changes 4.1, ReadIndex 6.4, proposals at most once 6.3.
// Gray and Cheriton, Leases (SOSP 1989). etcd-io/raft doc.go, rawnode.go, and its issue 12359 of etcd about when a change of
// membership is applied.
package core
