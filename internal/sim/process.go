package sim

import (
	"errors"

	"github.com/opencluster/oclocks/broker/control/desk"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/broker/edge"
	"github.com/opencluster/oclocks/broker/spread"
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
	keeping  keeping
	past     past
	identity desk.Identity
	enrols   *enrolment
	arb      *arb
	desk     *teller
	asks     *flow.Proposer
	asking   bool // the proposer waits
	reign    *leading
	barred   map[uint64]bool
	seen     seen
	leaving  *leaving

	// package broker
	number, life uint64
	shards       []*shard
	node         *spread.Node
	count        uint32
	state        *shared.State
	live         int
	until        int64 // of the last lease
	gone         map[uint64]bool
	turns        map[uint32]bool
	links        links
	sessions     map[string]*edge.Sessions // by zone
	receipts     *edge.Receipts
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
		barred: map[uint64]bool{}, gone: map[uint64]bool{}, turns: map[uint32]bool{}, sessions: map[string]*edge.Sessions{}, receipts: edge.NewReceipts(clusterSecret),
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
	p.enrol()
}

// leaveCluster is an operator who gives a removed node an empty directory and another identifier.
func (m *machine) leaveCluster() {
	m.rename()
	m.disk = newDisk(m.w)
}

// shared is Control.State.
func (p *process) shared() *shared.State { return p.arb.fsm.State() }
