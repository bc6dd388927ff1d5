package core

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"go.etcd.io/raft/v3"
	pb "go.etcd.io/raft/v3/raftpb"
)

// Never is what Next says when nothing is due without an input.
const Never int64 = math.MaxInt64

// members of the group, by raft ID.
type members struct{ Voters, Learners []uint64 }

func (m members) state() *pb.ConfState { return &pb.ConfState{Voters: m.Voters, Learners: m.Learners} }

// Node is one member of the group. It is not safe for use by several goroutines at once.
type Node struct {
	cfg Config
	log *storage
	rn  *raft.RawNode
	now int64 // the newest time that was told
	err error // not nil: the node must not go on

	conf    members // as of what is applied
	applied uint64  // index of the last entry handed out
	change  uint64  // index of the last command handed out
	digest  uint64  // of the FSM at change, as of the last Advance
	seen    seen

	elect  elect
	lead   lead // what only a leader has
	prop   proposals
	reads  reads
	holder holder // this node's own lease
	frames parts

	heard      map[uint64]int64 // when something came from a member last
	down       map[uint64]bool  // members of which the transport says that they are gone
	priorities map[uint64]int

	out     Output // for the next Ready, beside what Raft has
	persist Persist
	pending *raft.Ready // handed out and not yet advanced
	told    Leadership  // as of the last event
}

// New makes a node of what its store has. The first Ready gives the FSM's state. Errors wrap ErrConfig.
func New(cfg Config, start Start, now int64) (*Node, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	log, err := start.open()
	if err != nil {
		return nil, err
	}
	n := &Node{
		cfg: cfg, log: log, now: now, seen: seen{}, frames: parts{whole: map[uint64]*whole{}},
		heard: map[uint64]int64{}, down: map[uint64]bool{}, priorities: map[uint64]int{},
	}
	n.prop.waiting = map[uint64]*proposal{}
	n.reads.waiting = map[uint64]*read{}
	if start.Snapshot != nil {
		body, err := openSnapshot(start.Snapshot.GetData())
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrConfig, err)
		}
		n.restore(start.Snapshot, body)
	}
	err = n.guard(func() error {
		n.rn, err = raft.NewRawNode(&raft.Config{
			ID: cfg.ID, ElectionTick: max(2, int((cfg.Election+cfg.Heartbeat-1)/cfg.Heartbeat)), HeartbeatTick: 1,
			Storage: log, Applied: n.applied, MaxSizePerMsg: MaxFrame, MaxCommittedSizePerReady: 4 << 20,
			MaxUncommittedEntriesSize: 64 << 20, MaxInflightMsgs: 256, CheckQuorum: true, PreVote: true,
			ReadOnlyOption: raft.ReadOnlySafe, StepDownOnRemoval: true, Logger: logger{cfg.Log},
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrConfig, err)
	}
	st := n.rn.BasicStatus()
	n.elect.term, n.elect.vote = st.GetTerm(), st.GetVote()
	n.elect.campaign = n.now + n.cfg.Election + n.delay()
	n.lead.tick, n.holder.due = Never, Never
	n.elect.refused = Never
	n.leadAlone()
	return n, n.err
}

// Err is not nil once the node has met something impossible. It must not go on then; all inputs are refused.
func (n *Node) Err() error { return n.err }

// Tick tells the time, boot-time nanoseconds, and does what is due at it. Call it first in each turn in which the node gets
// an input, with a time read after the input had come, and when Next says so. A time before one that was told counts as that.
func (n *Node) Tick(now int64) {
	n.now = max(n.now, now)
	_ = n.input(func() error { // what fails is in n.err
		n.leaderTick()
		n.watch()
		n.electionTick()
		n.watch()
		n.proposalTick()
		n.readTick()
		n.leaseTick()
		return nil
	})
}

// Next says when Tick and then Ready are due if no input comes before: at once (a time that has passed), later, or Never.
func (n *Node) Next() int64 {
	switch {
	case n.err != nil:
		return Never
	case n.HasReady():
		return n.now
	}
	return min(n.leaderDue(), n.electionDue(), n.proposalDue(), n.readDue(), n.leaseDue())
}

// Receive takes a frame. Errors wrap ErrFrame and change nothing, or ErrFailed.
func (n *Node) Receive(from uint64, buf []byte) error {
	if n.err != nil {
		return n.err
	}
	f, err := n.unpack(from, buf)
	if err != nil || f == nil {
		return err
	}
	for _, m := range f.raft {
		if err := n.check(from, m); err != nil {
			return fmt.Errorf("%w: %s: %w", ErrFrame, m.GetType(), err)
		}
	}
	return n.input(func() error {
		if n.isMember(from) {
			n.heard[from] = n.now
		}
		switch f.kind {
		case kindAsk:
			n.receiveAsk(from, &f.ask)
		case kindAnswer:
			n.receiveAnswer(from, &f.answer)
		default:
			for _, m := range f.raft {
				if err := n.step(from, m); err != nil {
					return err
				}
				n.watch()
			}
		}
		return nil
	})
}

// Peer tells that the transport's connection to a member has opened or closed. If it was the leader, this node does not
// wait for the election time.
func (n *Node) Peer(id uint64, alive bool) {
	_ = n.input(func() error { // what fails is in n.err
		if alive {
			delete(n.down, id)
			return nil
		}
		if len(n.down) < maxMembers {
			n.down[id] = true
		}
		if n.elect.leads {
			n.rn.ReportUnreachable(id)
		} else if n.elect.leader == id {
			n.leaderGone()
		}
		return nil
	})
}

// SetPriorities says who is preferred as leader: 1 (most) to 15 (only if nothing else is left); others count as that.
func (n *Node) SetPriorities(priorities map[uint64]int) {
	n.priorities = make(map[uint64]int, len(priorities))
	for id, p := range priorities { // order: each entry goes to its own place
		n.priorities[id] = min(max(p, 1), lastPriority)
	}
}

func (n *Node) priority(id uint64) int {
	if id == n.cfg.ID && n.cfg.Reluctant {
		return reluctantPriority
	}
	if p := n.priorities[id]; p != 0 {
		return p
	}
	return DefaultPriority
}

// input runs something that may change Raft's state, and looks at what became of it.
func (n *Node) input(do func() error) error {
	if n.err != nil {
		return n.err
	}
	if n.pending != nil {
		n.err = fmt.Errorf("%w: an input between Ready and Advance", ErrFailed)
		return n.err
	}
	return n.guard(func() error {
		err := do()
		n.watch()
		// What is applied is applied: these two need not wait for the next entry.
		n.settleReads()
		n.settleLease()
		return err
	})
}

// guard turns a panic, by which Raft says that something cannot be, into n.err.
func (n *Node) guard(do func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			n.err = fmt.Errorf("%w: %v", ErrFailed, r)
			err = n.err
		}
	}()
	return do()
}

func (n *Node) isVoter(id uint64) bool   { return slices.Contains(n.conf.Voters, id) }
func (n *Node) isLearner(id uint64) bool { return slices.Contains(n.conf.Learners, id) }
func (n *Node) isMember(id uint64) bool  { return n.isVoter(id) || n.isLearner(id) }

// alone says that this node is the only voter, so that it leads without asking anybody.
func (n *Node) alone() bool { return len(n.conf.Voters) == 1 && n.conf.Voters[0] == n.cfg.ID }

// setConf takes over the members.
func (n *Node) setConf(cs *pb.ConfState) {
	was := n.isMember(n.cfg.ID)
	n.conf = members{slices.Sorted(slices.Values(cs.GetVoters())), slices.Sorted(slices.Values(cs.GetLearners()))}
	n.out.Events = append(n.out.Events, Membership{
		Change: n.applied, Voters: slices.Clone(n.conf.Voters), Learners: slices.Clone(n.conf.Learners),
	})
	if was && !n.isMember(n.cfg.ID) {
		n.out.Events = append(n.out.Events, Removed{Change: n.applied})
	}
	maps.DeleteFunc(n.heard, func(id uint64, _ int64) bool { return !n.isMember(id) })
}

// restore takes over a snapshot: the store's at the start, or one from the leader.
func (n *Node) restore(snap *pb.Snapshot, body snapshotBody) {
	n.applied = snap.GetMetadata().GetIndex()
	n.change, n.seen = body.change, body.seen
	n.log.confIndex = 0 // the snapshot has all members as of its index
	n.out.Restore = &FSMState{Change: body.change, Data: body.fsm}
	n.out.Apply = nil
	n.setConf(snap.GetMetadata().GetConfState())
}
