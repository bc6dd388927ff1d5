package sim

import (
	"errors"
	"fmt"

	"github.com/opencluster/oclocks/broker/control/desk"
	"github.com/opencluster/oclocks/broker/control/enrol"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/broker/control/reign"
	"github.com/opencluster/oclocks/broker/spread"
	"github.com/opencluster/oclocks/conf/shared"
)

// begins stands for control/starts.go: the start is made known to the disk, and whoever is there is asked for the last one.
func (p *process) begins(done func()) {
	d := &p.m.disk
	if d.mark != "" && p.past.lacks(d.mark) {
		p.w.fault("the journal alone is old")
		p.past.whole = false
	}
	before := d.starts
	d.starts = before.Begin(p.start)
	asking, over := enrol.NewAsking(before, d.raft, d.empty()), false
	var step func(alone bool, answers ...enrol.Start)
	step = func(alone bool, answers ...enrol.Start) {
		if over {
			return
		}
		out := asking.Step(p.m.clock(), alone, answers...)
		over = out.Done
		switch {
		case !out.Done:
			if out.Ask && !p.askStarts(func(a enrol.Start) { step(false, a) }) {
				p.timer(50*us, func() { step(true) })
			}
			p.timer(out.Next-p.m.clock(), func() { step(false) })
		case out.Err != nil:
			p.fail(out.Err)
		case out.Old:
			p.w.tell("%v has an old disk: it begins anew", p.m)
			p.w.stats.OldDisks++
			d.renew(p.w)
			d.starts = flow.Starts{}.Begin(p.start)
			fallthrough
		default:
			done()
		}
	}
	step(false)
}

// askStarts asks everybody, and says whether somebody listens.
func (p *process) askStarts(answer func(enrol.Start)) (somebody bool) {
	question := enrol.Question{Identifier: p.m.id, Raft: p.m.disk.raft}
	p.m.others(func(o *machine) {
		if o.p.arb == nil {
			return
		}
		somebody = true
		p.w.send(p.m, o, "starts?", func(q *process) {
			if q.arb == nil {
				return
			}
			status := q.arb.node.Status()
			a := enrol.LastStart(question, q.shared(), &status)
			p.w.send(q.m, p.m, "starts", func(r *process) {
				if r == p {
					answer(a)
				}
			})
		})
	})
	return somebody
}

// enrolment stands for control/register.go: the goroutine around an enrol.Enrolment.
type enrolment struct {
	*actor
	p       *process
	room    *enrol.Enrolment
	request shared.Register
	answer  *reign.Answer
	asked   int // questions
	due     int64
}

func (p *process) enrol() {
	d := &p.m.disk
	e := &enrolment{p: p, room: enrol.NewEnrolment(p.m.id, d.raft, p.start, d.starts), due: never}
	e.request = shared.Register{
		ID: p.m.id, Raft: d.raft, Fresh: !p.past.whole, Name: fmt.Sprintf("%s-%s", p.m, p.m.id[23:]),
		Level: shared.Written(p.m.program()), Start: p.start, Starts: d.starts.Before(p.start), Location: fmt.Sprintf("l%d", p.m.index%2),
	}
	e.actor = p.actor("the enrolment", e.turn, func() int64 { return e.due })
	p.enrols = e
	e.ring()
}

func (e *enrolment) turn() {
	p := e.p
	out := e.room.Step(enrol.Facts{State: p.shared(), Leader: p.arb.status().Leader, Now: p.m.clock()}, e.answer)
	e.answer = nil
	switch {
	case out.Fail != nil:
		e.failed(out)
		return
	case out.Become != nil:
		if p.become(out.Become, out.Starts); p.dead {
			return
		}
	case out.Stays:
		p.w.fault("removed node goes on voting")
	case out.Ask:
		e.ask()
	}
	if e.due = out.Next; out.Next == 0 {
		e.due = never
	}
}

// ask asks whoever leads.
func (e *enrolment) ask() {
	p := e.p
	e.asked++
	id, listens := e.asked, false
	take := func(a reign.Answer) {
		if e.asked == id {
			e.asked++
			e.answer = &a
			e.ring()
		}
	}
	for _, o := range p.w.machines {
		if o.p == nil || o.p.reign == nil || !o.p.reign.listening() {
			continue
		}
		listens = true
		p.w.send(p.m, o, "register", func(q *process) {
			if r := q.reign; r != nil && r.listening() {
				r.register(e.request, func(a reign.Answer) {
					p.w.send(q.m, p.m, "admission", func(s *process) {
						if s == p {
							take(a)
						}
					})
				})
			}
		})
	}
	wait := enrol.RequestWait
	if !listens {
		wait = 100 * us
	}
	p.timer(wait, func() { take(enrol.Silence) })
}

func (e *enrolment) failed(out enrol.Enrolled) {
	p := e.p
	switch {
	case errors.Is(out.Fail, flow.ErrDuplicate):
		p.w.stats.Duplicates++
	case out.OldDisk:
		p.w.stats.OldDisks++
		p.m.disk.renew(p.w)
	case errors.Is(out.Fail, shared.ErrLevel):
		p.tooOld(out.Fail)
		return
	case !errors.Is(out.Fail, flow.ErrRemoved):
		p.w.fail("%v is refused: %v", p.m, out.Fail)
	}
	p.ended(out.Fail)
}

// become is control.become, and then broker's part: openBuckets, openLinks, scores, Serve.
func (p *process) become(n *shared.Node, starts flow.Starts) {
	mark, err := p.keeping.Mark()
	if err != nil {
		p.m.disk.files.suffer(err)
		p.fail(fmt.Errorf("write the journal: %w", err))
		return
	}
	p.m.disk.starts, p.m.disk.mark, p.m.disk.gen = starts, mark, p.m.gen
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
	p.node = spread.NewNode(p.state)
	p.tell(p.node.Opened())
	p.serving = true
	p.desk.with((*desk.Inbox).Serve)
}
