package sim

import (
	"errors"
	"fmt"

	"github.com/opencluster/oclocks/broker/control/desk"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/broker/control/reign"
	"github.com/opencluster/oclocks/broker/edge"
	"github.com/opencluster/oclocks/conf/shared"
)

// process is one life of a daemon.
type process struct {
	w    *world
	m    *machine
	dead bool
	gens map[string]int // the processes of other nodes that routes are known to

	// package control
	start    uint64
	before   []uint64 // starts that the disk knew
	keeping  keeping
	past     past
	identity desk.Identity
	asked    int // registration questions
	arb      *arb
	desk     *teller
	asks     *flow.Proposer
	asking   bool // the proposer waits
	reign    *leading
	barred   map[uint64]bool
	seen     seen
	leaving  bool

	// package broker
	number, life uint64
	shards       []*shard
	count        uint32
	state        *shared.State
	live         int
	gone         map[uint64]bool
	turns        map[uint32]bool
	links        links
	sessions     map[string]*edge.Sessions // by zone
	serving      bool
}

type seen struct{ away, gone map[uint64]bool }

// boot starts a daemon: broker.Daemon.start up to the registration.
func (m *machine) boot() {
	if m.p != nil || m.down {
		return
	}
	w := m.w
	m.gen++
	p := &process{
		w: w, m: m, gens: map[string]int{}, start: w.rnd.Uint64() | 1, asks: flow.NewProposer(1 << 16),
		barred: map[uint64]bool{}, gone: map[uint64]bool{}, turns: map[uint32]bool{}, sessions: map[string]*edge.Sessions{},
	}
	m.p = p
	w.tell("%v starts (process %d), raft %x, journal of %d bytes", m, m.gen, m.disk.raft, m.disk.files.size())
	if !p.readJournal() {
		return
	}
	p.desk = newTeller(p)
	m.others(func(o *machine) {
		if w.connected(m, o) {
			w.opened(m, o)
		}
	})
	p.begins(func() { p.beginControl() })
}

// whenAwake does something now or, if the machine stands still, when it goes on.
func (p *process) whenAwake(do func()) {
	switch {
	case p.dead:
	case p.m.paused > p.w.now:
		p.w.plan(p.m.paused+p.m.lag(), func() { p.whenAwake(do) })
	default:
		do()
	}
}

// timer does something after a time by the machine's clock.
func (p *process) timer(d int64, do func()) {
	p.w.after(max(1, int64(float64(d)/p.m.rate)), func() { p.whenAwake(do) })
}

// die ends a process where it is.
func (p *process) die(why string) {
	if p.dead {
		return
	}
	p.w.tell("%v dies: %s", p.m, why)
	p.dead = true
	p.m.p = nil
	p.w.serverEnded(p.m)
	p.m.tear = false
	p.m.disk.files.locked = false
	for _, o := range p.w.machines {
		if o != p.m {
			d := p.w.between(us, 5*ms)
			if !p.w.healed && p.w.chance(0.2) {
				d = p.w.between(500*ms, 4*second) // nobody says that it is gone
			}
			p.w.routeTold(o, p.m, false, d)
		}
	}
	p.w.check.processEnded(p)
}

// fail is a process that finds that it cannot go on; something starts it again.
func (p *process) fail(err error) {
	p.die(err.Error())
	p.m.restart(p.w.between(50*ms, 500*ms))
}

// ended is a process that is not the node any more.
func (p *process) ended(err error) {
	p.fail(err)
	if errors.Is(err, flow.ErrRemoved) {
		p.m.leaveCluster()
	}
}

// restart starts the machine's daemon after a time, if nothing else does.
func (m *machine) restart(d int64) {
	if m.boots {
		return
	}
	m.boots = true
	m.w.after(d, func() {
		m.boots = false
		m.boot()
	})
}

// The words of package control for what a registration may come to.
var (
	errDuplicate = errors.New("another process runs as this node")
	errRemoved   = errors.New("the node was removed")
	errOldDisk   = errors.New("the disk is older than the node")
)

// begins is control.begins: the start is made known to the disk, and whoever is there is asked for the last one.
func (p *process) begins(done func()) {
	d := &p.m.disk
	disk := d.starts
	d.starts = disk.Begin(p.start)
	p.before = d.starts.Before(p.start)
	if d.empty() {
		done()
		return
	}
	began := p.m.clock()
	limit := began + 300*ms // probeWait
	p.probe(began, limit, disk, done)
}

// probe is control.olderThanKnown: one round of questions after the other.
func (p *process) probe(began, limit int64, disk flow.Starts, done func()) {
	round := &heard{}
	raft, id := p.m.disk.raft, p.m.id
	asked := 0
	p.m.others(func(o *machine) {
		if o.p.arb == nil {
			return
		}
		asked++
		p.w.send(p.m, o, "starts?", func(q *process) {
			if q.arb == nil {
				return
			}
			a := q.lastStart(id, raft)
			p.w.send(q.m, p.m, "starts", func(r *process) {
				if r == p {
					round.take(a, raft, disk)
				}
			})
		})
	})
	end := func() {
		if round.over {
			return
		}
		round.over = true
		switch {
		case round.old && !round.elects:
			p.fail(errors.New("an old disk, and nobody can elect a leader without it"))
		case round.old:
			p.w.tell("%v has an old disk: it begins anew", p.m)
			p.w.stats.OldDisks++
			p.m.disk.renew(p.w)
			p.m.disk.starts = flow.Starts{}.Begin(p.start)
			p.before = nil
			done()
		case round.done:
			done()
		case round.elects:
			limit = began + second // leaderWait
			fallthrough
		case round.answers == 0:
			if p.m.clock() >= limit {
				done()
				return
			}
			p.probe(began, limit, disk, done)
		default:
			done()
		}
	}
	round.end = end
	if asked == 0 { // no responders
		round.done = true
		p.timer(50*us, end)
		return
	}
	p.timer(100*ms, end) // askAgain
}

// heard is control.heardStarts, in the making.
type heard struct {
	old, done, elects bool
	answers           int
	over              bool
	end               func()
}

type startAnswer struct {
	raft, start, change uint64
	leading, elects     bool
}

func (h *heard) take(a startAnswer, raft uint64, disk flow.Starts) {
	if h.over {
		return
	}
	switch {
	case a.raft == raft && disk.Older(a.start, a.change):
		h.old, h.elects = true, a.elects
		h.end()
		return
	case a.leading:
		h.done = true
		h.end()
		return
	default:
		h.answers++
	}
	h.elects = h.elects || a.elects
}

func (p *process) lastStart(id string, raft uint64) startAnswer {
	status := p.arb.node.Status()
	others := 0
	for _, v := range status.Voters {
		if v != raft {
			others++
		}
	}
	a := startAnswer{leading: status.Leading, elects: others > len(status.Voters)/2}
	if n := p.shared().NodeByID(id); n != nil {
		a.raft, a.start, a.change = n.Raft, n.Start, n.Registered
	}
	return a
}

// beginControl is the rest of control.begin.
func (p *process) beginControl() {
	founds := p.m.index == 0 && p.m.gen == 1
	if err := p.openArbiter(founds); err != nil {
		p.w.fail("%v: start the arbiter: %v", p.m, err)
		return
	}
	if p.dead {
		return
	}
	p.desk.actor.ring()
	p.enrol(20 * ms)
}

// enrol is control.enrolment: the leader is asked until it answers.
func (p *process) enrol(retry int64) {
	p.asked++
	id := p.asked
	d := &p.m.disk
	request := shared.Register{
		ID: p.m.id, Raft: d.raft, Fresh: !p.past.whole, Name: fmt.Sprintf("%s-%s", p.m, p.m.id[23:]), Start: p.start, Starts: p.before,
		Location: fmt.Sprintf("l%d", p.m.index%2),
	}
	listening := 0
	for _, o := range p.w.machines {
		if o.p == nil || o.p.reign == nil || !o.p.reign.listening() {
			continue
		}
		listening++
		p.w.send(p.m, o, "register", func(q *process) {
			r := q.reign
			if r == nil || !r.listening() {
				return
			}
			r.register(request, func(a reign.Answer) {
				p.w.send(q.m, p.m, "admission", func(s *process) {
					if s == p && p.asked == id {
						p.asked++
						p.admitted(a)
					}
				})
			})
		})
	}
	wait := 2 * second // requestWait
	if listening == 0 {
		wait = 100 * us
	}
	p.timer(wait, func() {
		if p.asked == id && p.identity.Number == 0 {
			p.asked++
			retry = min(2*retry, 500*ms)
			p.timer(retry, func() { p.enrol(retry) })
		}
	})
}

func (p *process) admitted(a reign.Answer) {
	err := shared.Result{Kind: a.Kind, Problem: a.Problem}.Err()
	switch {
	case a.WaitMS > 0:
		p.timer(min(a.WaitMS*ms, 2*second), func() { p.enrol(20 * ms) })
	case a.Duplicate:
		p.w.stats.Duplicates++
		p.fail(errDuplicate)
	case errors.Is(err, shared.ErrOldDisk):
		p.w.stats.OldDisks++
		p.m.disk.renew(p.w)
		p.fail(errOldDisk)
	case errors.Is(err, shared.ErrRemoved):
		p.fail(errRemoved)
		p.m.leaveCluster()
	case err != nil:
		p.w.fail("%v is refused: %v", p.m, err)
	default:
		p.enrolled(a, p.m.clock()+2*second)
	}
}

// enrolled is control.enrolled: it waits until the registration is applied here.
func (p *process) enrolled(a reign.Answer, until int64) {
	if state := p.shared(); state.Change >= a.Change {
		n := state.NodeByID(p.m.id)
		switch {
		case n == nil:
			p.fail(errRemoved)
			p.m.leaveCluster()
		case n.Raft != p.m.disk.raft:
			p.fail(errDuplicate)
		default:
			p.become(n)
		}
		return
	}
	if p.m.clock() >= until {
		p.enrol(20 * ms)
		return
	}
	p.timer(2*ms, func() { p.enrolled(a, until) })
}

// become is control.become, and then broker's part: openBuckets, openLinks, scores, Serve.
func (p *process) become(n *shared.Node) {
	if n.Start == p.start {
		p.m.disk.starts = p.m.disk.starts.Registered(n.Start, n.Registered)
	}
	p.identity = desk.Identity{Number: n.Number, Life: n.Life, Change: n.Registered}
	if err := p.arb.identify(n.Number); err != nil {
		p.w.fail("%v: ask for leases: %v", p.m, err)
		return
	}
	p.w.tell("%v is node %d, life %d, by change %d", p.m, n.Number, n.Life, n.Registered)
	p.desk.notice(desk.Introduce{})
	p.number, p.life = n.Number, n.Life
	p.state = p.shared()
	if !p.settle() {
		return
	}
	if err := p.openBuckets(); err != nil {
		p.w.fail("%v: open the buckets: %v", p.m, err)
		return
	}
	p.scores(p.state)
	p.serving = true
	p.desk.with((*desk.Inbox).Serve)
}

// leaveCluster is an operator who gives a removed node an empty directory and another identifier.
func (m *machine) leaveCluster() {
	m.rename()
	m.disk = newDisk(m.w)
}

// shared is Control.State.
func (p *process) shared() *shared.State { return p.arb.fsm.State() }
