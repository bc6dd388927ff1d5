package sim

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/broker/control/desk"
	"github.com/opencluster/oclocks/broker/control/reign"
	"github.com/opencluster/oclocks/conf/shared"
)

// arb stands for package arbiter (arbiter.go, run.go, call.go, queue.go) around arbiter/core and conf/shared, with the callbacks of
// broker/control/callback.go.
type arb struct {
	*actor
	p      *process
	node   *core.Node
	fsm    *shared.FSM
	digest uint64
	lastID uint64
	calls  map[uint64]func(outcome)

	frames     []frame
	peers      []func()
	begin      []func()
	identity   *uint64
	priorities map[uint64]int

	leases    []core.NodeLease // as others see them: Arbiter.Leases
	published int
}

type frame struct {
	from uint64
	raw  []byte
}

type outcome struct {
	change uint64
	result any
	err    error
}

var errUnknown = errors.New("the outcome is not known")

// openArbiter is arbiter.Start.
func (p *process) openArbiter(found bool) error {
	a := &arb{p: p, fsm: shared.New(), calls: map[uint64]func(outcome){}}
	p.arb = a
	d := &p.m.disk
	if found {
		first := core.Found(d.raft, a.fsm.Snapshot())
		d.start.Merge(&first)
	}
	d.life++
	a.digest = a.fsm.Digest()
	var err error
	a.node, err = core.New(core.Config{
		ID: d.raft, Life: d.life, Lease: 800 * ms, Renew: 160 * ms, Heartbeat: 40 * ms, Election: 200 * ms, MayLease: p.mayLease,
	}, d.start, p.m.clock())
	if err != nil {
		return err
	}
	a.actor = p.actor("the arbiter", a.run, a.node.Next)
	a.carryOut()
	a.ring()
	return nil
}

func (a *arb) run() {
	n := a.node
	n.Tick(a.p.m.clock())
	if a.identity != nil {
		if err := n.Identify(*a.identity, nil); err != nil {
			a.p.w.fail("%v: identify: %v", a.p.m, err)
		}
		a.identity = nil
	}
	if a.priorities != nil {
		n.SetPriorities(a.priorities)
		a.priorities = nil
	}
	frames, peers, begin := a.frames, a.peers, a.begin
	a.frames, a.peers, a.begin = nil, nil, nil
	for _, f := range frames {
		if err := n.Receive(f.from, f.raw); err != nil && n.Err() == nil {
			a.p.w.stats.Dropped++
		}
	}
	for _, do := range peers {
		do()
	}
	for _, do := range begin {
		do()
	}
	a.carryOut()
	a.publish()
}

// publish is Arbiter.publish, for leases: others see them when the turn is over, which takes a while if something is stored in it.
// What was decided in it may have been decided long before.
func (a *arb) publish() {
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

// carryOut is Arbiter.carryOut.
func (a *arb) carryOut() {
	p := a.p
	for a.node.HasReady() {
		out := a.node.Ready()
		if a.node.Err() != nil {
			break
		}
		if out.Persist != nil {
			if !p.save(out.Persist) {
				return
			}
		}
		for _, m := range out.Messages {
			a.post(m)
		}
		a.apply(&out)
		if p.dead {
			return
		}
		if out.Snapshot {
			if err := a.node.Snapshot(a.fsm.Snapshot()); err != nil {
				p.w.fail("%v: snapshot: %v", p.m, err)
			}
		}
		a.node.Advance(a.digest)
	}
	if err := a.node.Err(); err != nil {
		p.w.fail("the arbiter of %v has stopped: %v", p.m, err)
	}
}

// post publishes a frame: whoever has the store with that raft ID listens.
func (a *arb) post(m core.Message) {
	from := a.p.m.disk.raft
	for _, o := range a.p.w.machines {
		if o.p == nil || o.p.arb == nil || o.disk.raft != m.To {
			continue
		}
		raw := a.p.w.damagedFrame(slices.Clone(m.Frame))
		a.p.w.send(a.p.m, o, "raft", func(q *process) {
			if q.arb == nil {
				return
			}
			q.arb.frames = append(q.arb.frames, frame{from, raw})
			q.arb.ring()
			if len(q.seen.away) > 0 {
				q.desk.put(desk.Heard{Raft: from})
			}
		})
	}
}

func (a *arb) apply(out *core.Output) {
	p := a.p
	if out.Restore != nil {
		if err := a.fsm.Restore(out.Restore.Change, out.Restore.Data); err != nil {
			p.w.fail("%v: restore the state at change %d: %v", p.m, out.Restore.Change, err)
			return
		}
		p.applied(out.Restore.Change)
	}
	ends := map[uint64]outcome{}
	for _, c := range out.Apply {
		before := a.fsm.State()
		result := a.fsm.Apply(c.Change, c.Data)
		p.w.check.applied(p.m, c.Change, c.Data, before, a.fsm.State())
		if c.Proposal != 0 {
			ends[c.Proposal] = outcome{change: c.Change, result: result}
		}
		p.applied(c.Change)
	}
	if out.Restore != nil || len(out.Apply) > 0 {
		a.digest = a.fsm.Digest()
	}
	for _, d := range out.Done {
		o := outcome{change: d.Change}
		if d.Outcome != core.Taken {
			o.err = fmt.Errorf("outcome %d: %w", d.Outcome, errUnknown)
		}
		ends[d.ID] = o
	}
	for _, id := range slices.Sorted(maps.Keys(ends)) {
		a.end(id, ends[id])
	}
	for _, e := range out.Events {
		p.event(e)
	}
}

func (a *arb) end(id uint64, o outcome) {
	if done := a.calls[id]; done != nil {
		delete(a.calls, id)
		a.p.w.after(a.p.m.lag(), func() { a.p.whenAwake(func() { done(o) }) })
	}
}

// call begins something that has an outcome; after limit (0: never) nobody waits for it any more.
func (a *arb) call(limit int64, do func(id uint64) error, done func(outcome)) {
	a.begin = append(a.begin, func() {
		id := a.lastID + 1
		a.calls[id] = done
		if err := do(id); err != nil {
			a.end(id, outcome{err: err})
			return
		}
		a.lastID = id
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
	a.call(limit, func(id uint64) error { return a.node.Propose(id, command, only) }, done)
}

func (a *arb) identify(number uint64) error {
	a.identity = &number
	a.ring()
	return nil
}

func (a *arb) peer(raft uint64, alive bool) {
	a.peers = append(a.peers, func() { a.node.Peer(raft, alive) })
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
