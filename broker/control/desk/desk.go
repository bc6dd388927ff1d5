package desk

import (
	"maps"
	"slices"

	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/conf/shared"
)

// maxReports go in one message.
const maxReports = 2048

// Config of a desk.
type Config struct {
	Self   string // identifier of this node
	Routed bool   // routes are told of: a node that has none is away
}

// Facts are what is known after the Inbox was taken.
type Facts struct {
	Identity Identity
	State    *shared.State // the newest that is applied here
	Status   core.Status
	Now      int64 // boot time in nanoseconds
}

// Identity is what a registration has given this node. Number 0: none yet.
type Identity struct {
	Number, Life uint64
	Change       uint64 // of the registration
}

// Desk is what the one goroutine that calls the copies knows.
type Desk struct {
	cfg Config
	f   *Facts // of this turn
	out []Effect

	serves bool
	lease  *Lease        // the newest
	nodes  []shared.Node // as of the change told last
	over   error         // this process is not the node any more: the copies are told nothing from then on
	failed bool          // that was told
	term   uint64        // the newest that is known, of orders too
	reign  uint64        // the term in which this node leads; 0: it does not
	looked int64

	presence  flow.Presence
	connected []string        // nodes with a route, if routes are watched
	missing   []string        // nodes that had no route at the last look
	away      map[uint64]bool // nodes that are told as away
}

// New has told nobody anything.
func New(cfg Config) *Desk { return &Desk{cfg: cfg, away: map[uint64]bool{}} }

// Turn does what there is to do, and says when there is something to do without a cause; 0: never.
func (d *Desk) Turn(f Facts, b Batch) (effects []Effect, next int64) {
	d.f, d.out = &f, nil
	if b.serve && !d.serves {
		d.serves = true
		for _, number := range slices.Sorted(maps.Keys(d.away)) {
			d.copies(Away{number, true})
		}
	}
	d.tell(b.changes)
	d.mine(f.State) // a change by which it is not may have been told before its number was known here
	if b.granted != nil {
		d.lease = b.granted
	}
	if (b.granted != nil || b.serve) && d.lease != nil {
		d.copies(Grant{*d.lease})
	}
	for _, e := range b.events {
		d.event(e)
	}
	d.report(&b)
	next = d.look()
	effects = d.out
	d.f, d.out = nil, nil
	return effects, next
}

func (d *Desk) do(e Effect) { d.out = append(d.out, e) }

// copies tells them, if they are there and this process is the node.
func (d *Desk) copies(e Effect) {
	if d.serves && d.over == nil {
		d.do(e)
	}
}

// tell tells the copies what was applied. What comes after the change by which this process is not the node any more is lost.
func (d *Desk) tell(changes []told) {
	for _, t := range changes {
		if !d.mine(t.State) {
			return
		}
		if len(t.views) > 0 {
			d.copies(Install{t.views})
		}
		d.copies(t.Applied)
	}
}

func (d *Desk) event(e Event) {
	switch e := e.(type) {
	case Order:
		d.order(e)
	case Leadership:
		d.leadership(e.Leadership)
	case Removed:
		d.removed()
	case Route:
		d.route(e)
	case Hello:
		d.hello(e)
	case Heard:
		if n := d.f.State.NodeByRaft(e.Raft); n != nil {
			d.presence.Heard(n.ID, 0)
		}
	case Farewell:
		if e.Identifier != d.cfg.Self && d.f.State.NodeByID(e.Identifier) != nil {
			d.presence.Farewell(e.Identifier, e.Start)
		}
	case Never:
		for _, q := range e.Asks {
			d.copies(Refused{q})
		}
	case Introduce:
		d.introduce()
	}
}

// order carries out what a leader wants, if no later one is known.
func (d *Desk) order(o Order) {
	if o.Term < d.term || !d.serves {
		return
	}
	d.term = o.Term
	if len(o.Seal) > 0 {
		d.copies(Seal{o.Seal})
	}
	if len(o.HandOver) > 0 {
		d.copies(HandOver{o.HandOver})
	}
}

// leadership begins and ends this node's reign.
func (d *Desk) leadership(e core.Leadership) {
	d.term = max(d.term, e.Term)
	if d.reign != 0 && (!e.Leading || e.Term != d.reign) {
		d.reign = 0
		d.do(End{})
	}
	if e.Leading && d.reign == 0 {
		d.reign = e.Term
		d.do(Begin{e})
	}
	d.checkSelf()
}

// report passes on what sealed copies have told.
func (d *Desk) report(b *Batch) {
	if d.reign != 0 && len(b.reports) > 0 {
		d.do(Report{Here: true, Node: d.f.Identity.Number, Reports: b.reports})
		return
	}
	for part := range slices.Chunk(b.reports, maxReports) {
		d.do(Report{Node: d.f.Identity.Number, Reports: part})
	}
}
