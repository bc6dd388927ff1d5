package control

import (
	"github.com/opencluster/oclocks/broker/control/desk"
	"github.com/opencluster/oclocks/broker/control/reign"
	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/internal/fault"
)

// teller is the one goroutine that calls the copies. What they are told is decided in package desk.
type teller struct {
	c    *Control
	room *desk.Desk
}

func newTeller(c *Control) *teller {
	return &teller{c: c, room: desk.New(desk.Config{Self: c.cfg.Identifier, Routed: c.cfg.Watch != nil})}
}

func (t *teller) run() {
	timer := boottime.NewTimer()
	defer timer.Close()
	defer t.endReign()
	for {
		if next := t.turn(); next > 0 {
			timer.Reset(next)
		}
		select {
		case <-t.c.box.wake:
		case <-timer.C:
		case <-t.c.ctx.Done():
			return
		}
	}
}

// holdLook is how often it is looked whether the fault point control.hold is still armed, in nanoseconds.
const holdLook int64 = 10e6

// held is the fault point control.hold: views and changes wait, leases do not.
func held() bool { return fault.File() != "" && fault.Value("control.hold") == "1" }

// turn takes what waits, does what is to be done, and says when there is something to do without a cause; 0: never.
func (t *teller) turn() int64 {
	hold := held()
	batch := t.c.box.take(hold)
	facts := desk.Facts{Identity: t.c.identity(), State: t.c.State(), Status: t.c.arb.Status(), Now: boottime.Now()}
	effects, next := t.room.Turn(facts, batch)
	t.c.mu.Lock()
	copies := t.c.copies
	t.c.mu.Unlock()
	for _, e := range effects {
		if install, ok := e.(desk.Install); ok {
			t.c.overtaken(install.Views)
		}
		if !desk.Tell(copies, e) {
			t.others(e)
		}
	}
	if hold {
		return facts.Now + holdLook
	}
	return next
}

// others does what does not concern the copies.
func (t *teller) others(e desk.Effect) {
	c := t.c
	switch e := e.(type) {
	case desk.Begin:
		c.beginReign(e.Leadership)
	case desk.End:
		t.endReign()
	case desk.Report:
		if r := c.reigning(); !e.Here {
			c.post.send(subjectReport, encode(reports{Node: e.Node, Reports: e.Reports}))
		} else if r != nil {
			r.put(reign.Report{Node: e.Node, Reports: e.Reports})
		}
	case desk.Greet:
		c.post.send(subjectHello(e.Node), c.hello(e.Ask))
	case desk.Peer:
		c.arb.Peer(e.Raft, e.Alive)
	case desk.Prefer:
		c.arb.SetPriorities(e.Priorities)
	case desk.Seen:
		c.seen.Store(&seen{e.Away, e.Gone})
		c.anyAway.Store(len(e.Away) > 0)
		c.wakeReign()
	case desk.Noticed:
		c.log.Info("a node is away or back", "node", e.Node, "name", e.Name, "away", e.Away)
	case desk.Over:
		c.fail(e.Err)
	}
}

func (t *teller) endReign() {
	t.c.mu.Lock()
	r := t.c.reign
	t.c.reign = nil
	t.c.mu.Unlock()
	if r != nil {
		r.end()
	}
}

func (c *Control) hello(ask bool) []byte {
	return encode(hello{Identifier: c.cfg.Identifier, Number: c.identity().Number, Start: c.start, Ask: ask})
}
