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
	leaderless int64 = 5e9   // a registered node that has known of no leader for so long asks once more
	stayAsk    int64 = 500e6 // a removed node whose vote is counted asks again
)

// Enrolment asks whoever leads for registration until the node is registered. Then it watches: a node that is removed while
// messages do not reach it is no member of the group any more when they do, so nobody ever tells it. So when it has known of no
// leader for a while it asks again. The same start is answered the same again, without effect; or it is told that it was removed.
//
// A removed node stays as long as the leader says that the group counts on its vote: the leader can take that from it only when
// enough other voters are there, and if it stopped before, and another voter were lost, nobody could ever lead again. What its own
// log says of the voters is not enough: a node that was cut off then never hears that its vote is gone.
type Enrolment struct {
	self   string
	raft   uint64
	start  uint64
	disk   flow.Starts
	phase  phase
	until  int64 // of a pause, of waiting for the state, or of watching
	retry  int64
	answer reign.Answer // whose change is waited for
	member bool         // it is registered
	gone   bool         // it was removed
}

// Facts are what is known here before a step.
type Facts struct {
	Now    int64
	State  *shared.State // the newest that is applied
	Leader uint64        // raft ID of the leader; 0: none is known
}

type phase uint8

const (
	pausing  phase = iota // until a time
	asking                // a question is on its way
	applying              // it is registered, and the state does not have that yet
	watching
	over
)

// Silence is the answer if there is none in time, or nobody listens.
var Silence = reign.Answer{Kind: "silence"}

// Enrolled is what an Enrolment wants.
type Enrolled struct {
	Ask     bool
	Become  *shared.Node // this process is that node now
	Stays   bool         // it was removed, and is there for its vote only
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

// Step takes the answer to the question that is on its way, if it has come.
func (e *Enrolment) Step(f Facts, answer *reign.Answer) (out Enrolled) {
	if e.phase == asking && answer != nil {
		e.answered(&f, answer, &out)
	}
	if e.phase == applying {
		e.apply(&f, &out)
	}
	if e.phase == watching {
		e.watch(&f)
	}
	if e.phase == pausing && f.Now >= e.until {
		e.phase, out.Ask = asking, true
	}
	if e.phase != asking && e.phase != over {
		out.Next = e.until
	}
	return out
}

func (e *Enrolment) answered(f *Facts, a *reign.Answer, out *Enrolled) {
	switch {
	case a.Kind == Silence.Kind, a.WaitMS > 0:
		e.phase = pausing
		e.wait(f, a)
		return
	}
	e.retry = retryFirst
	err := e.refusal(a)
	if errors.Is(err, flow.ErrRemoved) && a.Votes {
		e.gone, out.Stays = true, true
		e.phase, e.until = pausing, f.Now+stayAsk
		return
	}
	if err != nil {
		e.phase, out.Fail, out.OldDisk = over, err, errors.Is(err, flow.ErrOldDisk)
		return
	}
	if e.member {
		e.watchFrom(f.Now)
		return
	}
	e.phase, e.until, e.answer = applying, f.Now+RequestWait, *a
}

// wait puts the next question off.
func (e *Enrolment) wait(f *Facts, a *reign.Answer) {
	switch {
	case e.member && !e.gone:
		e.watchFrom(f.Now)
	case a.WaitMS > 0:
		e.until = f.Now + min(a.WaitMS, RequestWait/1e6)*1e6
	default:
		e.retry = min(2*e.retry, retryLast)
		e.until = f.Now + e.retry
	}
}

// apply waits until the registration is applied here. It gives up after some time, since the leader that has to send the log may
// be gone.
func (e *Enrolment) apply(f *Facts, out *Enrolled) {
	if f.State.Change < e.answer.Change {
		if f.Now >= e.until {
			e.phase = pausing
		}
		return
	}
	e.phase = over
	switch n := f.State.NodeByID(e.self); {
	case n == nil: // whoever leads says what becomes of it
		e.removed(f.Now)
	case n.Raft != e.raft || n.Start != e.start: // another process has been registered since
		out.Fail = fmt.Errorf("%w: it has registered at change %d", flow.ErrDuplicate, n.Registered)
	default:
		out.Become, out.Starts = n, e.disk.Registered(n.Start, n.Registered)
		e.member = true
		e.watchFrom(f.Now)
	}
}

// removed asks soon whether this node's vote is counted still.
func (e *Enrolment) removed(now int64) { e.gone, e.phase, e.until = true, pausing, now+retryFirst }

func (e *Enrolment) watchFrom(now int64) { e.phase, e.until = watching, now+leaderless }

// watch asks once more if no leader has been known since it began, and when the node was removed.
func (e *Enrolment) watch(f *Facts) {
	switch {
	case f.State.Change >= e.answer.Change && f.State.NodeByID(e.self) == nil:
		e.removed(f.Now)
	case f.Leader != 0:
		e.until = f.Now + leaderless
	case f.Now >= e.until:
		e.phase = pausing
	}
}

// refusal is why the leader will not register this node. To one that is registered a start that it does not know means another
// process: its disk is as it was.
func (e *Enrolment) refusal(a *reign.Answer) error {
	switch {
	case e.member && errors.Is(shared.Result{Kind: a.Kind}.Err(), shared.ErrOldDisk):
		return fmt.Errorf("%w (%s)", flow.ErrDuplicate, a.Problem)
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
