package sim

import (
	"errors"
	"fmt"

	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/broker/control/desk"
	"github.com/opencluster/oclocks/broker/control/reign"
	"github.com/opencluster/oclocks/conf/shared"
)

// arb stands for package arbiter (arbiter.go, run.go, call.go, queue.go), the shell of core.Node.Turn, with the callbacks of
// broker/control/callback.go.
type arb struct {
	*actor
	p     *process
	node  *core.Node
	fsm   *shared.FSM
	ids   core.CallIDs
	calls map[uint64]func(outcome)
	in    core.Inputs
	begin []func()

	leases    []core.NodeLease // as others see them: Arbiter.Leases
	published int
	second    int64 // in which it has sent so many bytes
	sent      int
	picture   *core.Status // of the node since its last turn; nil: nobody has asked yet
}

// maxSent is how many bytes one arbiter may send in a second: thirty snapshots would be less.
const maxSent = 32 << 20

type outcome struct {
	change uint64
	result any
	err    error
}

var (
	errUnknown = errors.New("the outcome is not known")
	errDead    = errors.New("the process has died")
)

// openArbiter is arbiter.Start.
func (p *process) openArbiter(found bool) error {
	a := &arb{p: p, fsm: shared.NewAt(p.m.program()), calls: map[uint64]func(outcome){}}
	p.arb = a
	d := &p.m.disk
	if found {
		first := core.Found(d.raft, a.fsm.Snapshot())
		d.start.Merge(&first)
	}
	d.life++
	var err error
	a.node, err = core.New(core.Config{
		ID: d.raft, Life: d.life, Lease: 800 * ms, Renew: 160 * ms, Heartbeat: 40 * ms, Election: 200 * ms, MayLease: p.mayLease,
	}, d.start, p.m.clock())
	if err != nil {
		return err
	}
	a.actor = p.actor("the arbiter", a.run, a.node.Next)
	a.stopped(a.node.CarryOut(a))
	a.ring()
	return nil
}

func (a *arb) run() {
	in := a.in
	a.in = core.Inputs{}
	a.stopped(a.node.Turn(a.p.m.clock(), &in, a))
	a.picture = nil
}

// status is Arbiter.Status, between the node's turns.
func (a *arb) status() core.Status {
	if a.picture == nil {
		s := a.node.Status()
		a.picture = &s
	}
	return *a.picture
}

// stopped is Arbiter.fail. A process that has died in the turn has told why.
func (a *arb) stopped(err error) {
	switch {
	case err == nil, a.p.dead:
	case errors.Is(err, shared.ErrOldProgram):
		a.p.tooOld(err)
	default:
		a.p.w.fail("the arbiter of %v has stopped: %v", a.p.m, err)
	}
}

// What follows is core.Shell.

func (a *arb) Begin() {
	begin := a.begin
	a.begin = nil
	for _, do := range begin {
		do()
	}
}

func (a *arb) Dropped(uint64, error) { a.p.w.stats.Dropped++ }

func (a *arb) Save(p *core.Persist) error {
	if !a.p.save(p) {
		return errDead
	}
	return nil
}

func (a *arb) Digest() uint64 { return a.fsm.Digest() }
func (a *arb) State() []byte  { return a.fsm.Snapshot() }

// Publish does that for leases: others see them when the turn is over, which takes a while if something is stored in it.
// What was decided in it may have been decided long before.
func (a *arb) Publish() {
	a.published++
	if a.p.dead || !a.node.Leading() {
		a.leases = nil
		return
	}
	leases, turn := a.node.Leases(), a.published
	if a.p.w.healed || !a.p.w.chance(0.02) {
		a.leases = leases
		return
	}
	a.p.w.after(a.p.w.between(us, 10*ms), func() {
		if a.published == turn {
			a.leases = leases
		}
	})
}

// Send publishes a frame: whoever has the store with that raft ID listens.
func (a *arb) Send(m core.Message) {
	if s := a.p.w.now / second; s != a.second {
		a.second, a.sent = s, 0
	}
	if a.sent += len(m.Frame); a.sent > maxSent {
		a.p.w.fail("the arbiter of %v sends %d bytes in a second: Raft goes round and round", a.p.m, a.sent)
		a.sent = 0
	}
	from := a.p.m.disk.raft
	for _, o := range a.p.w.machines {
		if o.p == nil || o.p.arb == nil || o.disk.raft != m.To {
			continue
		}
		raw := a.p.w.damagedFrame(m.Frame)
		a.p.w.print.sent(a.p.w.now, a.p.m, o, raw)
		a.p.w.send(a.p.m, o, "raft", func(q *process) {
			if q.arb == nil {
				return
			}
			q.arb.in.Frames = append(q.arb.in.Frames, core.Frame{From: from, Body: raw})
			q.arb.ring()
			if len(q.seen.away) > 0 {
				q.desk.put(desk.Heard{Raft: from})
			}
		})
	}
}

func (a *arb) Restore(s *core.FSMState) error {
	if err := a.fsm.Restore(s.Change, s.Data); err != nil {
		return fmt.Errorf("restore the state at change %d: %w", s.Change, err)
	}
	a.p.applied(s.Change)
	return nil
}

func (a *arb) Apply(c *core.Command) (any, error) {
	before := a.fsm.State()
	result, err := a.fsm.Apply(c.Change, c.Data)
	if err != nil {
		return nil, err
	}
	a.p.w.check.applied(a.p.m, c.Change, c.Data, before, a.fsm.State())
	a.p.applied(c.Change)
	return result, nil
}

func (a *arb) End(id uint64, e core.End) {
	o := outcome{change: e.Change, result: e.Result}
	if e.Outcome != core.Taken {
		o.err = fmt.Errorf("outcome %d: %w", e.Outcome, errUnknown)
	}
	a.end(id, o)
}

func (a *arb) Tell(e core.Event) { a.p.event(e) }

func (a *arb) end(id uint64, o outcome) {
	if done := a.calls[id]; done != nil {
		delete(a.calls, id)
		a.p.w.after(a.p.m.lag(), func() { a.p.whenAwake(func() { done(o) }) })
	}
}

// call begins something that has an outcome; after limit (0: never) nobody waits for it any more. changes: it may take effect all the same.
func (a *arb) call(limit int64, changes bool, do func(id uint64) error, done func(outcome)) {
	a.begin = append(a.begin, func() {
		id := a.ids.Next(changes)
		a.calls[id] = done
		if err := do(id); err != nil {
			a.end(id, outcome{err: err})
			return
		}
		a.ids.Taken(id)
		if limit > 0 {
			a.p.timer(limit, func() {
				if a.calls[id] == nil {
					return
				}
				a.begin = append(a.begin, func() {
					if a.calls[id] != nil {
						a.node.Abandon(id)
						a.end(id, outcome{err: errUnknown})
					}
				})
				a.ring()
			})
		}
	})
	a.ring()
}

func (a *arb) propose(limit int64, command []byte, only core.Condition, done func(outcome)) {
	a.call(limit, true, func(id uint64) error { return a.node.Propose(id, command, only) }, done)
}

func (a *arb) identify(number uint64) error {
	a.in.Identity = &core.Identity{Number: number}
	a.ring()
	return nil
}

func (a *arb) peer(raft uint64, alive bool) {
	a.in.Peers = append(a.in.Peers, core.PeerState{Raft: raft, Alive: alive})
	a.ring()
}

// applied, mayLease and event are those of control/callback.go.
func (p *process) applied(change uint64) {
	p.desk.with(func(in *desk.Inbox) { in.Push(change, p.arb.fsm.State()) })
	p.rung()
	p.wakeReign()
}

// rung is control.bell.
func (p *process) rung() {
	if p.enrols != nil {
		p.enrols.ring()
	}
	if p.leaving != nil {
		p.leaving.ring()
	}
}

func (p *process) mayLease(number, raft uint64) error {
	return reign.MayLease(p.shared(), p.barred, number, raft)
}

func (p *process) event(e core.Event) {
	if e, ok := e.(core.Quarantine); ok {
		p.w.fail("the state of node %d has come apart at change %d: %x, the leader's is %x", e.Number, e.Change, e.Have, e.Want)
	}
	if _, ok := e.(core.Leadership); ok {
		p.rung()
	}
	changed := false
	p.desk.with(func(in *desk.Inbox) { changed = in.Arbiter(e) })
	if changed {
		p.wakeReign()
	}
}

func (p *process) wakeReign() {
	if p.reign != nil {
		p.reign.put(reign.Changed{})
	}
}
