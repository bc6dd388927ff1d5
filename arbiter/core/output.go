package core

import pb "go.etcd.io/raft/v3/raftpb"

// Output is what a node wants done. Carry it out from the top to the bottom, then call Advance, all before any other call.
type Output struct {
	Persist  *Persist  // nil: nothing to store. Otherwise it must be on the disk (fsync) before anything below is begun
	Messages []Message // send, in this order; each may be lost
	Restore  *FSMState // replace the FSM's state
	Apply    []Command // apply to the FSM, in this order
	Done     []Done    // outcomes of proposals and membership changes
	Reads    []Read    // outcomes of ReadIndex
	Events   []Event   // tell
	Snapshot bool      // call Node.Snapshot with the FSM's state
}

// Persist is to be stored in one transaction.
type Persist struct {
	HardState *pb.HardState // replaces the one before, unless nil
	Snapshot  *pb.Snapshot  // replaces the one before, unless nil
	Reset     bool          // remove all entries (before Entries are added)
	Compact   uint64        // the entries up to this index may be removed
	Entries   []*pb.Entry   // each replaces what has its index or a higher one; there is no gap
}

// Start is what a store gives back. The zero Start is a node that knows nothing: it waits until a leader adds it.
type Start struct {
	HardState *pb.HardState
	Snapshot  *pb.Snapshot
	Entries   []*pb.Entry // ascending without a gap; what the snapshot has too is ignored
}

// Message is a frame for another node.
type Message struct {
	To    uint64 // raft ID
	Frame []byte // at most MaxFrame and a little
}

// FSMState is a snapshot of the FSM.
type FSMState struct {
	Change uint64 // change ID of the last command in it
	Data   []byte
}

// Command is a committed command.
type Command struct {
	Change   uint64 // its change ID
	Data     []byte
	Proposal uint64 // the id given to Propose, if it is a proposal of this node that still waits; else 0
}

// Done is the outcome of a proposal or of a change of membership that waited. A command's success is its Command.
type Done struct {
	ID      uint64
	Outcome Outcome
	Change  uint64 // Taken: the log's index
}

// Outcome of a proposal.
type Outcome uint8

// Outcomes.
const (
	Taken   Outcome = iota + 1 // a membership change is applied
	Refused                    // it has no effect and never will
	Unknown                    // it may have taken effect (a snapshot went over it) or may do so later
)

// Read is the outcome of a ReadIndex: the FSM now has all that was committed when it was asked.
type Read struct {
	ID     uint64
	Change uint64 // change ID of the last command applied
}

// Event is one of Leadership, Granted, Refusal, Quarantine, Membership, Removed.
type Event interface{ event() }

// Leadership tells: another leader, another term, or this node began or ceased to lead.
type Leadership struct {
	Leader   uint64 // raft ID, 0: none known
	Term     uint64
	Leading  bool  // this node leads and has applied everything from before its term
	TakeFrom int64 // Leading: before this time nothing may be taken from any node
}

// Granted tells: this node holds a lease until Until. It has applied the change that the lease came with; Under is the change ID
// of its last command, so what acts under the lease must have seen the commands up to Under.
type Granted struct {
	Until int64
	Under uint64
	Live  int // nodes that hold a lease
}

// Refusal tells: the leader refused this node a lease.
type Refusal struct{ Why string }

// Quarantine tells: on the leader: a node's state differs from the leader's at the same change ID. It gets no lease.
type Quarantine struct {
	Number, Raft, Change uint64
	Have, Want           uint64 // digests
}

// Membership tells: the members are others now.
type Membership struct {
	Change           uint64 // the log's index
	Voters, Learners []uint64
}

// Removed tells: this node is no member any more.
type Removed struct{ Change uint64 }

func (Leadership) event() {}
func (Granted) event()    {}
func (Refusal) event()    {}
func (Quarantine) event() {}
func (Membership) event() {}
func (Removed) event()    {}
