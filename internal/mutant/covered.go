package mutant

// Covered is a mistake that was planted, reached in the seeds that were run, not found, and then understood: another rule covers it. It is
// in the code no more. What is told of it is the argument.
type Covered struct{ Bug, Why string }

// CoveredBugs are all of them.
func CoveredBugs() []Covered {
	return []Covered{
		{"a copy that was sealed for a takeover goes on under the old view", "a takeover is planned only once the old primary is sealed or without a " +
			"lease and barred from getting one, so nobody is left who could use what the others confirm; and the new primary takes over with all " +
			"that it has then, not with what it had when it was sealed. At a hand-over the primary has its lease: `skip-the-seal`"},
		{"a copy that throws its state away goes on as the same member", "it does so only after a view without it, and with every view a primary " +
			"forgets what it knew of those that do not count: two rules for one thing. Where only the " +
			"incarnation tells, it is found: `takeover-empty-node`, `lost-records-forgiven`"},
		{"what a copy outside of the set had under the last view counts under the next, though it may have begun anew", "the other half of " +
			"that: a copy that begins anew does so in Replica.discard, which raises its incarnation, or in a process that has lost records, " +
			"which gets another life; either way it is another member, and nothing is known of that (159 seeds, 1.5 simulated hours, before the themes)"},
		{"what is sent again begins one change too late", "a copy takes only what follows its own end, by number and by the hash before; " +
			"it asks again, and a neighbour that never sends the right one is dropped after a second: slower, and nothing is lost"},
		{"an answer counts the receipt by a copy of the chain that is not in the set", "changes pass along the chain and the set is a head of " +
			"it: who stands behind has no more than who stands before, so the same number is reached. It matters only while the chain is " +
			"changed: `out-of-sync-counts`"},
		{"changes of an earlier primary are confirmed without one of its own (Raft, 5.4.2)", "a new primary proposes a change of its own in the " +
			"same turn in which it takes over, before anything can be confirmed; with first and all every member of the set has the old ones anyhow"},
		{"a copy acts under a lease before the change is applied that came with it", "the arbiter does not tell of a lease before its own node " +
			"has applied that change, and the copies are told views before leases: each covers for the other. Planted in the arbiter: `lease-before-change`"},
	}
}
