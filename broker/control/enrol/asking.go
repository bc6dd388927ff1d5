package enrol

import (
	"cmp"
	"time"

	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/conf/shared"
)

const (
	// RequestWait is how long an answer is waited for, in nanoseconds.
	RequestWait int64 = 2e9
	leaderWait  int64 = 1e9 // for a leader that the others can elect
	askAgain    int64 = 100e6
)

// Question asks everybody what is known of a node's last start.
type Question struct {
	Identifier string `json:"identifier"`
	Raft       uint64 `json:"raft"`
}

// Start says what the registration was that is the node's last one, as far as the one who answers knows.
type Start struct {
	Raft    uint64 `json:"raft,omitempty"`
	Start   uint64 `json:"start,omitempty"`
	Change  uint64 `json:"change,omitempty"`
	Leading bool   `json:"leading,omitempty"`
	Elects  bool   `json:"elects,omitempty"` // the voters can elect a leader without that raft ID

	Lease time.Duration `json:"lease,omitempty"` // of the cluster's nodes, in nanoseconds; 0: not known
}

// LastStart tells a node what is known here of its last start.
func LastStart(q Question, state *shared.State, status *core.Status) Start {
	others := 0
	for _, voter := range status.Voters {
		if voter != q.Raft {
			others++
		}
	}
	answer := Start{Leading: status.Leading, Elects: others > len(status.Voters)/2}
	if state.Cluster != "" {
		answer.Lease = state.Settings.NodeLease
	}
	if n := state.NodeByID(q.Identifier); n != nil {
		answer.Raft, answer.Start, answer.Change = n.Raft, n.Start, n.Registered
	}
	return answer
}

// Asking asks everybody who is there for this node's last start, until somebody knows of one that the disk does not, the leader
// knows of none, or none can be expected to answer any more.
type Asking struct {
	disk  flow.Starts // before this start
	raft  uint64
	empty bool

	began, limit, round int64 // the round ends at that time
	answers             int   // in this round
	elects              bool  // somebody of this round says so
	out                 Asked
}

// Asked is what an Asking wants, or has come to.
type Asked struct {
	Ask   bool
	Done  bool
	Old   bool          // the disk is older than the node
	Err   error         // flow.ErrOldVoter: it is, and the group could not decide anything without this node
	Lease time.Duration // of the cluster's nodes; 0: not known
	Next  int64
}

// NewAsking asks for a control store with this raft ID, which is empty or not, on a disk that knows these starts.
func NewAsking(disk flow.Starts, raft uint64, empty bool) *Asking {
	return &Asking{disk: disk, raft: raft, empty: empty}
}

// Step takes the answers that have come. alone says that nobody listens.
func (a *Asking) Step(now int64, alone bool, answers ...Start) Asked {
	a.out.Ask = false
	first := a.round == 0
	if first {
		a.began, a.limit = now, now+RequestWait
	}
	for _, s := range answers {
		if a.heard(s); a.out.Done {
			return a.out
		}
	}
	switch {
	case alone:
		return a.done()
	case !first && now < a.round:
		return a.out
	case a.elects:
		a.limit = min(a.limit, a.began+leaderWait)
	case a.answers > 0:
		return a.done() // there is no leader, and there will be none before this node is there
	}
	if now >= a.limit {
		return a.done()
	}
	a.answers, a.elects = 0, false
	a.round = min(a.limit, now+askAgain)
	a.out.Ask, a.out.Next = true, a.round
	return a.out
}

func (a *Asking) done() Asked {
	a.out.Done, a.out.Next = true, 0
	return a.out
}

func (a *Asking) heard(s Start) {
	a.answers++
	a.out.Lease = cmp.Or(s.Lease, a.out.Lease)
	a.elects = a.elects || s.Elects
	a.out.Old = s.Raft == a.raft && a.disk.Older(s.Start, s.Change)
	if a.out.Old && !a.elects {
		a.out.Err = flow.ErrOldVoter
	}
	if a.out.Old || s.Leading || a.empty && a.out.Lease != 0 {
		a.done()
	}
}
