package arbiter

import (
	"fmt"

	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/internal/boottime"
)

// run is the arbiter's goroutine.
func (a *Arbiter) run() {
	defer close(a.ended)
	timer := boottime.NewTimer()
	defer timer.Close()
	for {
		a.arm(timer)
		select {
		case <-a.stop:
			a.endCalls()
			return
		case <-a.queue.wake:
		case <-timer.C:
		}
		if err := a.turn(); err != nil {
			a.fail(err)
			a.endCalls()
			return
		}
	}
}

// arm sets the timer, whatever clock the arbiter has.
func (a *Arbiter) arm(timer *boottime.Timer) {
	next := a.node.Next()
	if next == core.Never {
		timer.Stop()
		return
	}
	timer.Reset(boottime.Now() + next - a.cfg.Clock())
}

// fail stops for good: after an error of the store nobody knows what it has, so nothing may be said any more.
func (a *Arbiter) fail(err error) {
	a.err = fmt.Errorf("%w: %w", ErrFailed, err)
	a.cfg.Logger.Error("the arbiter has stopped", "error", err)
	close(a.failed)
}

// turn gives the core what waits, and does what it wants.
func (a *Arbiter) turn() error {
	b, dropped := a.queue.take()
	if dropped != a.lost {
		a.cfg.Logger.Warn("the arbiter's queue was full", "frames dropped", dropped-a.lost)
		a.lost = dropped
	}
	a.calling, a.late = b.calls, b.late
	return a.node.Turn(a.cfg.Clock(), &b.Inputs, shell{a}) // the clock is read after the inputs have come: see core
}

// shell is what the core has around it.
type shell struct{ a *Arbiter }

var _ core.Shell = shell{}

func (s shell) Begin() {
	for _, c := range s.a.calling {
		s.a.begin(c)
	}
	for _, do := range s.a.late {
		do()
	}
	s.a.calling, s.a.late = nil, nil
}

func (s shell) Dropped(from uint64, err error) {
	s.a.cfg.Logger.Warn("the arbiter dropped a frame", "from", raftID(from), "error", err)
}

func (s shell) Save(p *core.Persist) error { return s.a.cfg.Store.save(p) }
func (s shell) Send(m core.Message)        { s.a.cfg.Send(m.To, m.Frame) }
func (s shell) Digest() uint64             { return s.a.cfg.FSM.Digest() }
func (s shell) State() []byte              { return s.a.cfg.FSM.Snapshot() }

func (s shell) Restore(state *core.FSMState) error {
	if err := s.a.cfg.FSM.Restore(state.Change, state.Data); err != nil {
		return fmt.Errorf("restore the state at change %d: %w", state.Change, err)
	}
	return nil
}

func (s shell) Apply(c *core.Command) (result any, err error) {
	if result, err = s.a.cfg.FSM.Apply(c.Change, c.Data); err != nil {
		return nil, fmt.Errorf("apply change %d: %w", c.Change, err)
	}
	return result, nil
}

// Publish makes the pictures for those who ask from other goroutines.
func (s shell) Publish() {
	status, leases := s.a.node.Status(), s.a.node.Leases()
	s.a.status.Store(&status)
	s.a.leases.Store(&leases)
}

func (s shell) End(id uint64, e core.End) {
	s.a.endCall(id, outcome{change: e.Change, result: e.Result, err: doneError(e.Outcome)})
}

func (s shell) Tell(e core.Event) {
	if s.a.cfg.Events != nil {
		s.a.cfg.Events(e)
	}
}

func doneError(o core.Outcome) error {
	switch o {
	case core.Taken:
		return nil
	case core.Refused:
		return fmt.Errorf("%w any more: another entry has its place in the log", ErrRefused)
	}
	return ErrUnknown
}

func raftID(id uint64) string { return fmt.Sprintf("%016x", id) }
