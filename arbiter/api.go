package arbiter

// Condition restricts when a proposal may take effect. The zero Condition is none.
type Condition struct {
	// Term: only if this node leads in this term when it is proposed, and the entry is one of this term; never in a later one,
	// whatever becomes of this leader. 0: no such condition. What was decided with the leader's evidence (Leases, TakeFrom)
	// must name the term of that evidence: in a later term another leader grants the leases.
	Term uint64
	// Ended: numbers of nodes whose leases must be over (TakeFrom has passed, and what the leader granted has ended). The
	// leader checks it when it proposes, and grants none of them a lease until the proposal is applied; what it grants
	// afterwards counts only for a node that has applied it. Needs Term.
	Ended []uint64
}

// Status is a picture of this node. Times are boot-time nanoseconds.
type Status struct {
	Raft     uint64 // this node's raft ID
	Leader   uint64 // raft ID, 0 if none is known
	Term     uint64
	Leading  bool  // this node leads and has applied everything from before its term
	TakeFrom int64 // Leading: before this time no bucket may be taken from anybody
	Applied  uint64
	Commit   uint64
	Voters   []uint64 // raft IDs, ascending
	Learners []uint64 // raft IDs, ascending
	Peers    []Peer   // Leading: all members, itself included, by raft ID
	Live     int      // Leading: how many nodes hold a lease
}

// Peer is what the leader knows of a member.
type Peer struct {
	Raft   uint64
	Voter  bool
	Match  uint64 // it has the log up to here
	Heard  int64  // when something came from it last; 0: never
	Active bool   // something came from it within twice the election time
}

// NodeLease is what the leader knows of a node that asked it for a lease.
type NodeLease struct {
	Number uint64 // the node's number, as the request said
	Raft   uint64
	Until  int64 // the lease has ended from this time on; 0: none was granted
	Heard  int64 // when it asked last
	Note   []byte
}

// Event is one of Leadership, Granted, Refusal, Quarantine, Membership, Removed.
type Event interface{ event() }

// Leadership: another leader is known, or another term, or this node began or ceased to lead.
type Leadership struct {
	Leader   uint64 // raft ID, 0: none known
	Term     uint64
	Leading  bool
	TakeFrom int64
}

// Granted: this node holds a lease, until Until, once it has applied the change Under.
type Granted struct {
	Until int64
	Under uint64
	Live  int // nodes that hold a lease
}

// Refusal: the leader refused this node a lease.
type Refusal struct{ Why string }

// Quarantine: the leader refuses a node leases because its state has come apart from the leader's: an alert. It comes on
// the leader, when it is first noticed.
type Quarantine struct {
	Number, Raft, Change uint64
	Have, Want           uint64 // digests
}

// Membership: the members are others now.
type Membership struct {
	Change           uint64
	Voters, Learners []uint64
}

// Removed: this node is no member any more. The raft ID is never used again: the store has to be thrown away.
type Removed struct{ Change uint64 }

func (Leadership) event() {}
func (Granted) event()    {}
func (Refusal) event()    {}
func (Quarantine) event() {}
func (Membership) event() {}
func (Removed) event()    {}
