package core

// Shell is what stands around a node: it stores, sends, applies and tells, and decides nothing. In which order that is done is decided
// by [Node.Turn] and [Node.CarryOut], which call it. None of its methods may call the node, but Begin and Publish.
type Shell interface {
	// Begin has those begin what they wait for who have called since the last turn: Propose, ReadIndex, ChangeMembership, Transfer,
	// Abandon, AbandonRead.
	Begin()
	// Dropped: a frame was not taken, which harms nobody.
	Dropped(from uint64, err error)
	// Save stores in one transaction, on the disk (fsync). After an error nothing may be said any more, since nobody knows what is stored.
	Save(p *Persist) error
	// Send hands a frame to the network, which may lose it.
	Send(m Message)
	// Restore replaces the FSM's state.
	Restore(s *FSMState) error
	// Apply applies a command to the FSM, and gives what that has said. After an error the node does not know what the others have.
	Apply(c *Command) (result any, err error)
	// Digest is that of the FSM now.
	Digest() uint64
	// State is a snapshot of the FSM now.
	State() []byte
	// Publish makes Status and Leases as of now visible to those who may not ask the node.
	Publish()
	// End ends a call. One that nobody waits for any more is no error.
	End(id uint64, end End)
	// Tell tells an event.
	Tell(e Event)
}

// End is what has become of a call.
type End struct {
	Outcome Outcome
	Change  uint64 // Taken: the change ID of the command, or the log's index of a change of membership, or what a read has
	Result  any    // of a command
}

// Inputs is what has come since the last turn, but what Shell.Begin begins.
type Inputs struct {
	Identity   *Identity      // the newest; nil: as before
	Priorities map[uint64]int // the newest; nil: as before
	Frames     []Frame        // in their order
	Peers      []PeerState    // in their order
}

// Identity is for Node.Identify.
type Identity struct {
	Number uint64
	Note   []byte
}

// Frame is for Node.Receive.
type Frame struct {
	From uint64 // raft ID
	Body []byte
}

// PeerState is for Node.Peer.
type PeerState struct {
	Raft  uint64
	Alive bool
}

// Turn gives the node what has come, and does what it wants. now is read after that was taken. An error stops the node for good.
func (n *Node) Turn(now int64, in *Inputs, s Shell) error {
	n.Tick(now)
	if in.Identity != nil {
		if err := n.Identify(in.Identity.Number, in.Identity.Note); err != nil {
			return err
		}
	}
	if in.Priorities != nil {
		n.SetPriorities(in.Priorities)
	}
	for _, f := range in.Frames {
		if err := n.Receive(f.From, f.Body); err != nil && n.Err() == nil {
			s.Dropped(f.From, err)
		}
	}
	for _, p := range in.Peers {
		n.Peer(p.Raft, p.Alive)
	}
	s.Begin()
	err := n.CarryOut(s)
	s.Publish()
	return err
}

// CarryOut does what the node wants, in the order that it wants (see Output): what is said rests on what is stored, what is told rests
// on what is applied, and whoever hears of something finds it published.
func (n *Node) CarryOut(s Shell) error {
	for n.HasReady() {
		out := n.Ready()
		if err := n.Err(); err != nil {
			return err
		}
		if out.Persist != nil {
			if err := s.Save(out.Persist); err != nil {
				return err
			}
		}
		for _, m := range out.Messages {
			s.Send(m)
		}
		if err := n.apply(&out, s); err != nil {
			return err
		}
		if out.Snapshot {
			if err := n.Snapshot(s.State()); err != nil {
				return err
			}
		}
		n.Advance(s.Digest())
	}
	return n.Err()
}

func (n *Node) apply(out *Output, s Shell) error {
	if out.Restore != nil {
		if err := s.Restore(out.Restore); err != nil {
			return err
		}
	}
	type ended struct {
		id uint64
		End
	}
	var ends []ended
	for i := range out.Apply {
		c := &out.Apply[i]
		result, err := s.Apply(c)
		if err != nil {
			return err
		}
		if c.Proposal != 0 {
			ends = append(ends, ended{c.Proposal, End{Taken, c.Change, result}})
		}
	}
	for _, d := range out.Done {
		ends = append(ends, ended{d.ID, End{Outcome: d.Outcome, Change: d.Change}})
	}
	for _, r := range out.Reads {
		ends = append(ends, ended{r.ID, End{Outcome: Taken, Change: r.Change}})
	}
	if len(ends) > 0 || len(out.Events) > 0 {
		s.Publish()
	}
	for _, e := range ends {
		s.End(e.id, e.End)
	}
	for _, e := range out.Events {
		s.Tell(e)
	}
	return nil
}

// CallIDs numbers calls. What changes something is told apart from what was done already by its number (seen.go), of which only so many
// are kept: so those that the node has refused leave no gap. The numbers of the others are none of these.
type CallIDs struct{ changes, others uint64 }

// Next is for the call that is begun now.
func (c *CallIDs) Next(changes bool) uint64 {
	if changes {
		return c.changes + 1
	}
	c.others++
	return 1<<63 | c.others
}

// Taken says that the node has taken the call with the last number.
func (c *CallIDs) Taken(id uint64) {
	if id>>63 == 0 {
		c.changes = id
	}
}
