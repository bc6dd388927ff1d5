package sim

import (
	"github.com/opencluster/oclocks/broker/control/leave"
)

// leaving stands for control/leave.go: the goroutine around a leave.Leaving.
type leaving struct {
	*actor
	p     *process
	room  *leave.Leaving
	heard *leave.Heard
	asked int   // questions
	until int64 // then it is late
	due   int64
}

// leaveTime is that of broker/stop.go.
const leaveTime = 5 * second

// leave is Daemon.stop: the node's buckets are handed over, then it goes, and comes back after a while.
func (p *process) leave() {
	p.w.tell("%v leaves", p.m)
	l := &leaving{p: p, room: leave.New(p.identity.Number), until: p.m.clock() + leaveTime, due: never}
	l.actor = p.actor("the one who leaves", l.turn, func() int64 { return min(l.due, l.until) })
	p.leaving = l
	l.ring()
}

func (l *leaving) turn() {
	p := l.p
	out := l.room.Step(leave.Facts{
		Now: p.m.clock(), Late: p.m.clock() >= l.until, State: p.shared(), Status: p.arb.status(), Away: p.seen.away,
	}, l.heard)
	l.heard = nil
	switch {
	case out.Done:
		l.over = true
		l.gone(out)
		return
	case out.Ask:
		l.ask()
	case out.Transfer:
		p.transfer(func(o outcome) {
			l.heard = &leave.Heard{Moved: o.err == nil}
			l.ring()
		})
	}
	if l.due = out.Next; out.Next == 0 {
		l.due = never
	}
}

// ask asks whoever leads.
func (l *leaving) ask() {
	p := l.p
	l.asked++
	id, listens := l.asked, false
	take := func(h leave.Heard) {
		if l.asked == id {
			l.asked++
			l.heard = &h
			l.ring()
		}
	}
	number := p.identity.Number
	for _, o := range p.w.machines {
		if o.p == nil || o.p.reign == nil || !o.p.reign.listening() {
			continue
		}
		listens = true
		p.w.send(p.m, o, "leaving", func(q *process) {
			if r := q.reign; r != nil && r.listening() {
				r.leave(number, func(others int) {
					p.w.send(q.m, p.m, "others", func(s *process) {
						if s == p {
							take(leave.Heard{Asked: true, Others: others})
						}
					})
				})
			}
		})
	}
	wait := leave.AskWait
	if !listens {
		wait = 100 * us
	}
	p.timer(wait, func() { take(leave.Silence) })
}

// gone is the end of Control.Leave, and of Daemon.stop.
func (l *leaving) gone(out leave.Output) {
	p := l.p
	p.w.tell("%v goes: %v", p.m, out.Err)
	if out.Mute {
		if err := p.arb.identify(0); err != nil {
			p.w.fail("%v: %v", p.m, err)
		}
	}
	id, start := p.m.id, p.start
	p.m.others(func(o *machine) {
		p.w.send(p.m, o, "away", func(q *process) { q.desk.farewell(id, start) })
	})
	p.timer(5*ms, func() {
		if err := p.keeping.Close(true); err != nil {
			p.m.disk.files.suffer(err)
		}
		p.die("stopped")
		p.m.restart(p.w.between(100*ms, 3*second))
	})
}
