package enrol

import (
	"errors"
	"fmt"

	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/broker/control/reign"
	"github.com/opencluster/oclocks/conf/shared"
)

const (
	retryFirst int64 = 20e6 // until a question is asked again
	retryLast  int64 = 500e6
)

// Enrolment asks whoever leads for registration until the node is registered.
type Enrolment struct {
	self   string
	raft   uint64
	start  uint64
	disk   flow.Starts
	phase  phase
	until  int64 // of a pause, or of waiting for the state
	retry  int64
	answer reign.Answer // whose change is waited for
}

type phase uint8

const (
	pausing  phase = iota // until a time
	asking                // a question is on its way
	applying              // it is registered, and the state does not have that yet
	over
)

// Silence is the answer if there is none in time, or nobody listens.
var Silence = reign.Answer{Kind: "silence"}

// Enrolled is what an Enrolment wants.
type Enrolled struct {
	Ask     bool
	Become  *shared.Node // this process is that node now
	Starts  flow.Starts  // Become: what the disk has to know from then on
	Fail    error        // flow.ErrDuplicate, ErrRemoved, ErrLease, ErrOldDisk or ErrRefused
	OldDisk bool         // Fail: make the control store a new one
	Next    int64        // when to step if nothing happens; 0: never
}

// NewEnrolment is for a process with this start, identifier of its node, and raft ID of its control store. disk is what the disk
// knows.
func NewEnrolment(self string, raft, start uint64, disk flow.Starts) *Enrolment {
	return &Enrolment{self: self, raft: raft, start: start, disk: disk, retry: retryFirst}
}

// Step takes the answer to the question that is on its way, if it has come. state is the newest that is applied here.
func (e *Enrolment) Step(now int64, state *shared.State, answer *reign.Answer) (out Enrolled) {
	if e.phase == asking && answer != nil {
		e.answered(now, answer, &out)
	}
	if e.phase == applying {
		e.apply(now, state, &out)
	}
	if e.phase == pausing && now >= e.until {
		e.phase, out.Ask = asking, true
	}
	if e.phase == pausing || e.phase == applying {
		out.Next = e.until
	}
	return out
}

func (e *Enrolment) answered(now int64, a *reign.Answer, out *Enrolled) {
	switch {
	case a.Kind == Silence.Kind:
		e.retry = min(2*e.retry, retryLast)
		e.phase, e.until = pausing, now+e.retry
		return
	case a.WaitMS > 0:
		e.phase, e.until = pausing, now+min(a.WaitMS, RequestWait/1e6)*1e6
		return
	}
	e.retry = retryFirst
	if err := refusal(a); err != nil {
		e.phase, out.Fail, out.OldDisk = over, err, errors.Is(err, flow.ErrOldDisk)
		return
	}
	e.phase, e.until, e.answer = applying, now+RequestWait, *a
}

// apply waits until the registration is applied here. It gives up after some time, since the leader that has to send the log may
// be gone.
func (e *Enrolment) apply(now int64, state *shared.State, out *Enrolled) {
	if state.Change < e.answer.Change {
		if now >= e.until {
			e.phase = pausing
		}
		return
	}
	e.phase = over
	switch n := state.NodeByID(e.self); {
	case n == nil:
		out.Fail = flow.ErrRemoved
	case n.Raft != e.raft || n.Start != e.start: // another process has been registered since
		out.Fail = fmt.Errorf("%w: it has registered at change %d", flow.ErrDuplicate, n.Registered)
	default:
		out.Become, out.Starts = n, e.disk.Registered(n.Start, n.Registered)
	}
}

// refusal is why the leader will not register this node.
func refusal(a *reign.Answer) error {
	switch {
	case a.Duplicate:
		return fmt.Errorf("%w (%s)", flow.ErrDuplicate, a.Problem)
	case a.Kind == "":
		return nil
	}
	err := shared.Result{Kind: a.Kind, Problem: a.Problem}.Err()
	for _, as := range []struct{ reason, is error }{
		{shared.ErrRemoved, flow.ErrRemoved}, {shared.ErrLease, flow.ErrLease}, {shared.ErrOldDisk, flow.ErrOldDisk},
	} {
		if errors.Is(err, as.reason) {
			return fmt.Errorf("%w: %w", as.is, err)
		}
	}
	return fmt.Errorf("%w: %w", flow.ErrRefused, err)
}
