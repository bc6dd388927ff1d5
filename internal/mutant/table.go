package mutant

// Mutant is one planted bug.
type Mutant uint8

// The mutants, by the room in which they are planted. None is the code that ships.
const (
	None Mutant = iota

	// bucket/chain
	SkipSeal
	TakeoverOutOfSync
	TakeoverEmptyNode
	LeaseUnchecked
	LeaseBeforeChange
	OutOfSyncCounts
	ProposedSetIgnored
	HandOverTooEarly
	HashUnchecked
	NeighbourSpeaksForAll
	OldTailKept
	OldTailCounts
	OldEpochAccepted
	RecoveryDoesNotWait
	RecoveryEndsByTakeover

	// bucket/replicated
	AnsweredUnconfirmed
	ConfirmedUnwritten
	TermNotRaised

	// bucket
	RenewIgnoresKey
	ReleaseIgnoresKey
	WaiterOvertaken
	TimedOutStays
	CancelledLater
	RecoveryHandsOn
	ExpiryOnSecondary
	RenewNotCounted
	KeepAliveForgotten
	OutcomesNotReplicated
	OutcomeForgottenEarly
	TokenWithoutTerm
	SemaphoreMiscounts
	SnapshotWithoutQueue
	SplitForgetsQueue
	SplitKeepsBoth
	SplitForgetsOutcomes
	SessionIncarnationIgnored
	SessionOrderByConnection
	SessionCloseEndsNothing
	ZonesShareNames

	// conf/shared
	ViewNotCompared
	OldDiskWelcome
	LostRecordsForgiven
	RecoveryForgetsClients

	// arbiter
	LeaseFromReceipt
	WholeLease
	NewLeaderDoesNotWait
	ReadIndexSkipped
	ClosedRouteEndsLease
	FloorForgotten

	// internal/machine
	ClientFromReceipt
	ClientWholeLease
	KeepAliveExtendsAll
	EarlierConnectionCounts

	end
)

// Entry says what is broken.
type Entry struct {
	Name    string // as in MUTANTS=… and in docs/mutants.md
	Bug     string // what the code does wrong
	Promise string // what must not happen and does: number and words of DESIGN section 7
}

const (
	exclusion  = "1: two clients hold one lock"
	tokens     = "2: a token falls or repeats"
	answered   = "3: an answered grant or release is undone"
	primaries  = "4: two primaries answer in one epoch"
	waiters    = "5: a waiter is lost, overtaken or granted twice"
	once       = "6: a request has two effects"
	zones      = "7: a zone sees or delays another one"
	oldState   = "8: old state counts after a node came back"
	sameCopies = "3, 8: the copies of a bucket are not the same"
)

var table = [end]Entry{
	SkipSeal:               {"skip-the-seal", "a primary that hands over does not seal itself, and goes on until it hears of the new view", primaries},
	TakeoverOutOfSync:      {"takeover-out-of-sync", "a takeover counts every sealed copy of the chain, not those of the in-sync set", answered},
	TakeoverEmptyNode:      {"takeover-empty-node", "a takeover looks at nodes and not at incarnations: one that came back with nothing counts as the one that had it", oldState},
	LeaseUnchecked:         {"lease-unchecked", "a primary answers though its lease has ended", primaries},
	LeaseBeforeChange:      {"lease-before-change", "a fresh lease counts before the views are applied that it presumes", primaries},
	OutOfSyncCounts:        {"out-of-sync-counts", "while a new in-sync set is being committed, answers need only that: the receipt by a copy counts that is not in sync", answered},
	ProposedSetIgnored:     {"proposed-set-ignored", "while a new in-sync set is being committed, answers need only the old one", answered},
	HandOverTooEarly:       {"hand-over-too-early", "a primary gives its place away before the successor has everything", answered},
	HashUnchecked:          {"hash-unchecked", "the hash of a change is not compared with its bytes", sameCopies},
	NeighbourSpeaksForAll:  {"neighbour-speaks-for-all", "what the first secondary has counts for all that stand behind it", answered},
	OldTailKept:            {"old-tail-kept", "a rejoining copy keeps its own change where the primary has another one", sameCopies},
	OldTailCounts:          {"old-tail-counts", "what a copy had compared under the last view counts under the next one without being compared again", oldState},
	OldEpochAccepted:       {"old-epoch-accepted", "a cascade of an older epoch is taken", primaries},
	RecoveryDoesNotWait:    {"recovery-does-not-wait", "a bucket that may have lost its end grants at once", exclusion},
	RecoveryEndsByTakeover: {"recovery-ends-by-takeover", "a takeover inside a recovery ends it", exclusion},

	AnsweredUnconfirmed: {"answered-unconfirmed", "the primary answers when it has a change itself", answered},
	ConfirmedUnwritten:  {"confirmed-unwritten", "a copy confirms before the change is in its journal", answered},
	TermNotRaised:       {"term-not-raised", "the primary after a loss begins with the next term, not above all that may have been lost", tokens},

	RenewIgnoresKey:           {"renew-ignores-key", "a renew extends whatever hold there is", exclusion},
	ReleaseIgnoresKey:         {"release-ignores-key", "a release ends whatever hold there is", exclusion},
	WaiterOvertaken:           {"waiter-overtaken", "a shared request does not stop at the exclusive one that waits", waiters},
	TimedOutStays:             {"timed-out-stays", "a waiter that was told of its timeout keeps its place", waiters},
	CancelledLater:            {"cancelled-later", "a cancel that comes before its acquire is not remembered", once},
	RecoveryHandsOn:           {"recovery-hands-on", "in a recovery nobody is granted anything, but who waits", exclusion},
	ExpiryOnSecondary:         {"expiry-on-secondary", "time limits run on at the secondaries, which know of no renewals, and a takeover ends what is over by that", exclusion},
	RenewNotCounted:           {"renew-not-counted", "a renew is answered and does not begin the time limit anew", exclusion},
	KeepAliveForgotten:        {"keep-alive-forgotten", "a keep-alive is answered and does not begin the session's lease anew", exclusion},
	OutcomesNotReplicated:     {"outcomes-not-replicated", "the successor does not know which requests have been carried out", once},
	OutcomeForgottenEarly:     {"outcome-forgotten-early", "the outcome is forgotten that the client still waits for, not only those before", once},
	TokenWithoutTerm:          {"token-without-term", "tokens count on from the zone's last one, whatever the term", tokens},
	SemaphoreMiscounts:        {"semaphore-miscounts", "a semaphore counts holders and not what they took", exclusion},
	SnapshotWithoutQueue:      {"snapshot-without-queue", "a copy that joins gets the holders and not the queue, so a hand-over to it comes without", waiters},
	SplitForgetsQueue:         {"split-forgets-queue", "a doubling keeps the holders and drops who waits", waiters},
	SplitKeepsBoth:            {"split-keeps-both", "a doubling leaves the lock in the old bucket as well", waiters},
	SplitForgetsOutcomes:      {"split-forgets-outcomes", "a doubling forgets which requests have been carried out", once},
	SessionIncarnationIgnored: {"session-incarnation-ignored", "an older incarnation of a session may still act", exclusion},
	SessionOrderByConnection:  {"session-order-by-connection", "of two openings of a session that with the higher connection is the later one, whatever their incarnations", answered},
	SessionCloseEndsNothing:   {"session-close-ends-nothing", "a session is told that it is closed and keeps its holds", answered},
	ZonesShareNames:           {"zones-share-names", "a lock is looked up by its name in the first zone", zones},

	ViewNotCompared:        {"view-not-compared", "a view is committed though another one of the same epoch was", primaries},
	OldDiskWelcome:         {"old-disk-welcome", "a node that comes back with an old copy of its disk is taken for itself", oldState},
	LostRecordsForgiven:    {"lost-records-forgiven", "a node whose journal may lack its end keeps its incarnation", oldState},
	RecoveryForgetsClients: {"recovery-forgets-clients", "a recovery waits for the nodes' leases only, not for the clients'", exclusion},

	LeaseFromReceipt:     {"lease-from-receipt", "a node counts its lease from the receipt of the answer", primaries},
	WholeLease:           {"whole-lease", "a node acts for the whole lease and not for 3/4 of it", primaries},
	NewLeaderDoesNotWait: {"new-leader-does-not-wait", "a new leader does not wait for the leases that the last one has granted", primaries},
	ReadIndexSkipped:     {"read-index-skipped", "a leader grants leases without asking whether it still leads", primaries},
	FloorForgotten:       {"floor-forgotten", "a node gets a lease with a state from before the view that took its buckets away", primaries},
	ClosedRouteEndsLease: {"closed-route-ends-lease", "the leader takes a node whose connection is closed for one without a lease", primaries},

	ClientFromReceipt:       {"client-from-receipt", "a client counts its trust from the receipt of the grant", exclusion},
	ClientWholeLease:        {"client-whole-lease", "a client trusts the whole lease and not 3/4 of it", exclusion},
	KeepAliveExtendsAll:     {"keep-alive-extends-all", "a keep-alive's answer extends every hold without comparing what it counts", exclusion},
	EarlierConnectionCounts: {"earlier-connection-counts", "an answer to what was sent over an earlier connection counts after the session came back", exclusion},
}

// All are the mutants in the order of the table.
func All() []Mutant {
	list := make([]Mutant, 0, end-1)
	for m := None + 1; m < end; m++ {
		list = append(list, m)
	}
	return list
}

// Find finds a mutant by its name.
func Find(name string) (m Mutant, ok bool) {
	for _, m := range All() {
		if table[m].Name == name {
			return m, true
		}
	}
	return None, false
}

// Entry is the mutant's row; None has an empty one.
func (m Mutant) Entry() Entry { return table[m] }

func (m Mutant) String() string { return table[m].Name }
