package sim

import (
	"slices"
	"strconv"
	"time"

	"github.com/opencluster/oclocks/internal/check"
	mind "github.com/opencluster/oclocks/internal/machine"
	"github.com/opencluster/oclocks/subjects"
)

// This file is what the owners of session clients do with them.

func itoa(n int) string { return strconv.Itoa(n) }

// think begins something from time to time, and closes the client when all is over.
func (c *member) think() {
	c.awake(func() {
		w := c.w
		switch {
		case !w.healed && c.wishes < 4:
			c.begin()
		case w.healed && c.back && len(c.waits) > 0:
			// It may wait for what its own session has. Nobody else may wait in vain.
			c.giveUp(c.waits[0])
		case w.healed && c.wishes == 0 && !c.m.Idle():
			w.count("client closed")
			for len(c.claims) > 0 {
				c.unsay(c.claims[0])
			}
			c.do(c.m.Close)
		}
		w.after(w.between(w.mix.think/8, 2*w.mix.think), c.think)
	})
}

// begin does one thing.
func (c *member) begin() {
	w := c.w
	switch w.draw(14) {
	case 0:
		c.query(w.lockName())
	case 1:
		c.list("", 0)
	case 2:
		c.check()
	case 3:
		if w.chance(w.mix.force) {
			c.force()
		}
	case 4:
		if len(c.tools) < w.mix.tools {
			c.useTool()
		}
	case 5:
		c.many()
	case 6, 7:
		if len(c.tools)+1 < w.mix.tools {
			c.useTool()
			return
		}
		c.lock()
	default:
		c.lock()
	}
}

// many asks for several locks at once.
func (c *member) many() {
	for range 2 + c.w.draw(6) {
		c.lock()
	}
}

// lock is one lock from its acquire to its end.
func (c *member) lock() {
	w := c.w
	req := &subjects.Request{Op: subjects.OpAcquire, Name: w.lockName(), Holder: c.name}
	switch req.Name[0] {
	case 'm':
		req.Mode = [...]subjects.Mode{subjects.Exclusive, subjects.Shared, subjects.Shared}[w.draw(3)]
		if req.Mode == subjects.Exclusive && w.draw(3) == 0 {
			req.Drain = subjects.Soft
		}
	case 's':
		req.Mode, req.Slots, req.Take = subjects.Semaphore, 3, uint32(1+w.draw(2))
	}
	switch w.draw(5) {
	case 0:
		req.Kind, req.TTL, req.Has = subjects.Static, time.Duration(w.between(500*ms, int64(w.mix.maxLease))), subjects.HasTTL
	case 1:
		req.TTL, req.Has = time.Duration(w.between(500*ms, 5*second)), subjects.HasTTL
	case 2:
		req.Grace, req.Has = time.Duration(w.between(0, second)), subjects.HasGrace
		if w.draw(3) == 0 {
			req.Grace = 0
		}
	}
	cl := &claim{c: c}
	cl.hold.Owner = cl
	call := &mind.Call{Req: req, Hold: &cl.hold}
	wait := time.Duration(0)
	switch w.draw(3) {
	case 0:
		wait = time.Duration(w.between(100*ms, 20*second))
		req.Wait, req.Has = wait, req.Has|subjects.HasWait
	case 1:
		call.Endless, wait = true, 24*time.Hour
	}
	e := check.Event{Op: req.Op, Name: req.Name, Mode: req.Mode, Take: req.Take, Slots: req.Slots, Drain: req.Drain, Hold: subjects.Connection,
		TTL: req.TTL, Grace: -1, Wait: wait, Session: c.session}
	if req.Kind != subjects.KindDefault {
		e.Hold = req.Kind
	}
	if req.Has&subjects.HasGrace != 0 {
		e.Grace = req.Grace
	}
	c.wishes++
	mine := &acquire{call: call}
	mine.of = c.asked(e, func(r *mind.Result) {
		c.forget(mine)
		if r.Grant == nil {
			c.wishes--
			return
		}
		w.count("hold of " + kindOf(req) + " " + req.Mode.String())
		cl.granted = true
		c.claims = append(c.claims, cl)
		until := w.now + w.between(0, w.mix.keep)
		if w.chance(w.mix.brief) {
			until = w.now + w.between(0, 150*ms)
		}
		c.keepFor(cl, until)
	})
	call.Owner, mine.of.call = mine.of, call
	c.errands = append(c.errands, mine.of)
	c.waits = append(c.waits, mine)
	c.submit(call)
	if w.draw(5) == 0 {
		w.after(w.between(0, 3*second), func() { c.awake(func() { c.giveUp(mine) }) })
	}
}

func (c *member) forget(a *acquire) {
	if i := slices.Index(c.waits, a); i >= 0 {
		c.waits = slices.Delete(c.waits, i, i+1)
	}
}

func kindOf(req *subjects.Request) string {
	if req.Kind == subjects.Static {
		return "static"
	}
	return "connection"
}

// giveUp is the end of the context of a Lock.
func (c *member) giveUp(a *acquire) {
	c.do(func(now int64) {
		if c.m.GiveUp(now, a.call) {
			c.w.count("cancel")
			c.w.tell("%s gives up %s", c.name, a.of.id)
			c.note(&check.Event{Kind: check.GiveUp, Request: a.of.id})
			c.forget(a)
			c.wishes--
		}
	})
}

func (c *member) submit(call *mind.Call) {
	c.do(func(now int64) {
		if err := c.m.Submit(now, call); err != nil {
			call.Owner.(*errand).then(&mind.Result{Err: err})
		}
	})
}

// keepFor holds a lock for a while and gives it back. The owner looks at it before he does something, as he should.
func (c *member) keepFor(cl *claim, until int64) {
	w := c.w
	silent := c.keeps || w.chance(w.mix.silent)
	if c.keeps {
		until = w.now + w.between(w.mix.keep/2, 5*w.mix.keep)
	}
	var step func()
	step = func() {
		c.awake(func() {
			switch state := cl.hold.State(c.clock()); {
			case cl.over, state != mind.Held && state != mind.Suspect:
				c.do(c.m.Tick)
				if cl.over && w.draw(2) == 0 {
					c.release(cl) // it may have to be confirmed
					return
				}
				c.wishes--
			case w.now >= until || w.healed:
				if !w.healed && w.draw(20) == 0 {
					w.fault("holder forgets its lock")
					until = never
					w.after(second, step)
					return
				}
				c.release(cl)
			default:
				if !silent && w.draw(4) == 0 {
					c.renew(cl)
				}
				w.after(w.between(ms, max(min(until-w.now, second), 2*ms)), step)
			}
		})
	}
	w.after(w.between(0, 200*ms), step)
}

// release is Claim.release.
func (c *member) release(cl *claim) {
	g := cl.hold.Grant
	e := check.Event{Op: subjects.OpRelease, Name: g.Name, Token: g.Token, Plain: true} // after its session's end it is asked for anew
	lost := cl.over
	var owner *errand
	c.do(func(now int64) {
		if c.m.Tick(now); cl.over && !lost {
			return // it has just been lost
		}
		owner = c.asked(e, func(*mind.Result) { c.wishes-- })
		if !c.m.Release(now, &cl.hold, "", &mind.Call{Req: &subjects.Request{}, Owner: owner}) {
			c.note(&check.Event{Kind: check.GiveUp, Request: owner.id})
			c.wishes--
		}
	})
	if owner == nil {
		c.wishes--
	}
}

// unsay has the history know that a hold is given back with everything else.
func (c *member) unsay(cl *claim) {
	c.claims = c.claims[1:]
	cl.over = true
	c.note(&check.Event{Kind: check.Disbelieve, Name: cl.hold.Grant.Name, Token: cl.hold.Grant.Token})
}

// renew is Claim.Renew or Extend.
func (c *member) renew(cl *claim) {
	w := c.w
	req := &subjects.Request{}
	g := cl.hold.Grant
	if w.draw(2) == 0 {
		req.TTL, req.Has = time.Duration(w.between(500*ms, int64(w.mix.maxLease))), subjects.HasTTL
	}
	c.do(func(now int64) {
		if c.m.Tick(now); cl.over {
			return
		}
		e := check.Event{Op: subjects.OpRenew, Name: g.Name, Token: g.Token, TTL: req.TTL}
		owner := c.asked(e, func(*mind.Result) {})
		if !c.m.Renew(now, &cl.hold, &mind.Call{Req: req, Owner: owner}) {
			w.fail("%s holds %s (token %d) and may not renew it", c.name, g.Name, g.Token)
		}
	})
}

// raw sends a request as it is: the operations of client/operations.go.
func (c *member) raw(req *subjects.Request, e check.Event, then func(r *mind.Result)) (id string) {
	e.Op, e.Name = req.Op, req.Name
	c.wishes++
	owner := c.asked(e, func(r *mind.Result) {
		c.wishes--
		then(r)
	})
	c.submit(&mind.Call{Req: req, Raw: true, Owner: owner})
	return owner.id
}

func (c *member) query(name string) {
	since := c.w.now
	c.raw(&subjects.Request{Op: subjects.OpQuery, Name: name}, check.Event{}, func(r *mind.Result) {
		var rec subjects.Record
		if c.reads(&rec, r.Data) {
			c.seen(&rec, since)
		}
	})
}

// list reads all pages.
func (c *member) list(after string, pages int) {
	since := c.w.now
	c.raw(&subjects.Request{Op: subjects.OpList, Limit: uint32(1 + c.w.draw(20)), After: after}, check.Event{}, func(r *mind.Result) {
		var page subjects.Page
		if !c.reads(&page, r.Data) {
			return
		}
		last := ""
		for i := range page.Locks {
			if page.Locks[i].Name <= last {
				c.w.fail("%s is listed %q after %q", c.name, page.Locks[i].Name, last)
			}
			last = page.Locks[i].Name
			c.seen(&page.Locks[i], since)
		}
		if page.Next != "" && pages < 50 {
			c.list(page.Next, pages+1)
		}
	})
}

// check asks as a resource does that was given a token.
func (c *member) check() {
	other := c.w.someClaim(c.of.zone)
	if other == nil {
		return
	}
	g, since := other.hold.Grant, c.w.now
	c.raw(&subjects.Request{Op: subjects.OpCheck, Name: g.Name, Token: g.Token}, check.Event{Token: g.Token}, func(r *mind.Result) {
		var body subjects.Checked
		if c.reads(&body, r.Data) {
			c.note(&check.Event{Kind: check.Checked, Name: g.Name, Token: g.Token, Since: since, Current: body.Current, Newest: body.Newest,
				Oldest: body.Oldest})
		}
	})
}

// force is an administrator who ends somebody's hold.
func (c *member) force() {
	other := c.w.someClaim(c.of.zone)
	if other == nil {
		return
	}
	if kept := other.c.claims[0]; kept.granted && c.w.draw(2) == 0 {
		other = kept // what has been held for longest
	}
	c.forceHold(other, c.w.draw(4) == 0)
}

func (c *member) forceHold(other *claim, now bool) {
	g := other.hold.Grant
	c.w.forces++
	if !now && c.w.chance(c.w.mix.deaf) {
		other.c.deaf = max(other.c.deaf, c.w.now+c.w.between(500*ms, 6*second))
	}
	req := &subjects.Request{Op: subjects.OpForce, Name: g.Name, Token: g.Token, Now: now, RequestID: "force-" + itoa(c.w.forces),
		Has: subjects.HasRequest}
	c.raw(req, check.Event{Token: g.Token, Now: req.Now}, func(*mind.Result) {})
}

// someClaim is any hold that a session client of a zone has, nil if there is none.
func (w *world) someClaim(zone string) *claim {
	var all []*claim
	for _, c := range w.members {
		if c.of.zone == zone {
			all = append(all, c.claims...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all[w.draw(len(all))]
}
