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
	a.node.Tick(a.cfg.Clock()) // read after the inputs have come: see core
	if b.latest.identity != nil {
		if err := a.node.Identify(b.latest.identity.number, b.latest.identity.note); err != nil {
			return err
		}
	}
	if b.latest.priorities != nil {
		a.node.SetPriorities(b.latest.priorities)
	}
	for _, f := range b.frames {
		if err := a.node.Receive(f.from, f.frame); err != nil && a.node.Err() == nil {
			a.cfg.Logger.Warn("the arbiter dropped a frame", "from", raftID(f.from), "error", err)
		}
	}
	for _, p := range b.peers {
		a.node.Peer(p.raft, p.alive)
	}
	for _, c := range b.calls {
		a.begin(c)
	}
	for _, do := range b.late {
		do()
	}
	if dropped != a.lost {
		a.cfg.Logger.Warn("the arbiter's queue was full", "frames dropped", dropped-a.lost)
		a.lost = dropped
	}
	err := a.carryOut()
	a.publish()
	return err
}

// carryOut does what the core wants, in the order that it wants.
func (a *Arbiter) carryOut() error {
	for a.node.HasReady() {
		out := a.node.Ready()
		if err := a.node.Err(); err != nil {
			return err
		}
		if out.Persist != nil {
			if err := a.cfg.Store.save(out.Persist); err != nil {
				return err
			}
		}
		for _, m := range out.Messages {
			a.cfg.Send(m.To, m.Frame)
		}
		if err := a.apply(&out); err != nil {
			return err
		}
		if out.Snapshot {
			if err := a.node.Snapshot(a.cfg.FSM.Snapshot()); err != nil {
				return err
			}
		}
		a.node.Advance(a.digest)
	}
	return a.node.Err()
}

func (a *Arbiter) apply(out *core.Output) error {
	if out.Restore != nil {
		if err := a.cfg.FSM.Restore(out.Restore.Change, out.Restore.Data); err != nil {
			return fmt.Errorf("restore the state at change %d: %w", out.Restore.Change, err)
		}
	}
	ends := map[uint64]outcome{}
	for _, c := range out.Apply {
		result := a.cfg.FSM.Apply(c.Change, c.Data)
		if c.Proposal != 0 {
			ends[c.Proposal] = outcome{change: c.Change, result: result}
		}
	}
	if out.Restore != nil || len(out.Apply) > 0 {
		a.digest = a.cfg.FSM.Digest()
	}
	for _, d := range out.Done {
		ends[d.ID] = outcome{change: d.Change, err: doneError(d.Outcome)}
	}
	for _, r := range out.Reads {
		ends[r.ID] = outcome{change: r.Change}
	}
	if len(ends) > 0 || len(out.Events) > 0 {
		a.publish() // whoever hears of something finds it in Status
	}
	for id, o := range ends {
		a.endCall(id, o)
	}
	if a.cfg.Events != nil {
		for _, e := range out.Events {
			a.cfg.Events(e)
		}
	}
	return nil
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

// publish makes the pictures for those who ask from other goroutines.
func (a *Arbiter) publish() {
	status, leases := a.node.Status(), a.node.Leases()
	a.status.Store(&status)
	a.leases.Store(&leases)
}

func raftID(id uint64) string { return fmt.Sprintf("%016x", id) }
