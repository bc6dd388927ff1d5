package sim

import (
	"github.com/opencluster/oclocks/broker/control/desk"
	"github.com/opencluster/oclocks/broker/control/reign"
	"github.com/opencluster/oclocks/bucket/chain"
)

// teller stands for control/teller.go and box.go: the goroutine around a desk.Desk.
type teller struct {
	p *process
	*actor
	room *desk.Desk
	in   *desk.Inbox
	due  int64
}

func newTeller(p *process) *teller {
	d := &teller{p: p, room: desk.New(desk.Config{Self: p.m.id, Routed: true}), in: desk.NewInbox(), due: never}
	d.actor = p.actor("the desk", d.turn, func() int64 { return d.due })
	return d
}

// with puts something into the inbox.
func (d *teller) with(do func(in *desk.Inbox)) {
	do(d.in)
	d.ring()
}

// put leaves an event that came over the network.
func (d *teller) put(e desk.Event) { d.with(func(in *desk.Inbox) { in.Put(e) }) }

// notice leaves an event of this process.
func (d *teller) notice(e desk.Event) { d.with(func(in *desk.Inbox) { in.Notice(e) }) }

// turn is teller.turn.
func (d *teller) turn() {
	p := d.p
	if p.arb == nil {
		return // the store is not opened yet; what comes waits
	}
	batch := d.in.Take(false)
	facts := desk.Facts{Identity: p.identity, State: p.shared(), Status: p.arb.status(), Now: p.m.clock()}
	effects, next := d.room.Turn(facts, batch)
	for _, e := range effects {
		if !desk.Tell(d.p, e) {
			d.others(e)
		}
		if p.dead {
			return
		}
	}
	if d.due = next; next == 0 {
		d.due = never
	}
}

// others does what does not concern the copies.
func (d *teller) others(e desk.Effect) {
	p := d.p
	switch e := e.(type) {
	case desk.Begin:
		p.beginReign(e.Leadership)
	case desk.End:
		p.reign.end()
	case desk.Report:
		d.report(reign.Report{Node: e.Node, Reports: e.Reports}, e.Here)
	case desk.Greet:
		d.greet(e.Node, e.Ask)
	case desk.Peer:
		p.arb.peer(e.Raft, e.Alive)
	case desk.Prefer:
		p.arb.in.Priorities = e.Priorities
		p.arb.ring()
	case desk.Seen:
		p.seen = seen{e.Away, e.Gone}
		p.wakeReign()
	case desk.Noticed:
		p.w.tell("%v takes node %d for away: %t", p.m, e.Node, e.Away)
	case desk.Over:
		p.ended(e.Err)
	}
}

// report passes on what sealed copies have told.
func (d *teller) report(told reign.Report, here bool) {
	p := d.p
	if here {
		p.reign.put(told)
		return
	}
	p.m.others(func(o *machine) {
		if o.p.reign == nil || !o.p.reign.listening() {
			return
		}
		p.w.send(p.m, o, "report", func(q *process) {
			if r := q.reign; r != nil && r.listening() {
				r.put(told)
			}
		})
	})
}

// greet sends a hello to the node with a number.
func (d *teller) greet(number uint64, ask bool) {
	p := d.p
	h := desk.Hello{Identifier: p.m.id, Number: p.identity.Number, Start: p.start, Ask: ask}
	p.m.others(func(o *machine) {
		if o.p.identity.Number == number {
			p.w.send(p.m, o, "hello", func(q *process) { q.desk.put(h) })
		}
	})
}

// sealed is Control.Sealed.
func (d *teller) sealed(bucket uint32, report chain.Report) {
	d.with(func(in *desk.Inbox) { in.Sealed(bucket, report) })
}

func (d *teller) farewell(id string, start uint64) {
	d.put(desk.Farewell{Identifier: id, Start: start})
}

// routeTold is control.begin's Watch, and what natsd tells there: a node that was restarted is told as gone first.
func (p *process) routeTold(id string, gen int, up bool) {
	if up && p.gens[id] != gen {
		p.desk.notice(desk.Route{Identifier: id})
	}
	p.gens[id] = gen
	p.desk.notice(desk.Route{Identifier: id, Up: up})
}
