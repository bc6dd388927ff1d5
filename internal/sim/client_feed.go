package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"

	"github.com/opencluster/oclocks/internal/check"
	mind "github.com/opencluster/oclocks/internal/machine"
	"github.com/opencluster/oclocks/subjects"
)

// note adds to the history what a client did or saw now.
func (w *world) note(e *check.Event) {
	e.At = w.now
	w.check.note(e)
}

// count counts an operation, or something else that happened.
func (w *world) count(what string) { w.stats.Ops[what]++ }

func (c *member) note(e *check.Event) {
	e.Zone, e.Client = c.of.zone, c.name
	c.w.note(e)
}

// believe tells the history what the client believes from now on, in the machine's own words.
func (c *member) believe() {
	now := c.clock()
	for _, cl := range c.claims {
		if !cl.granted || cl.over {
			continue
		}
		end := never
		if left := cl.hold.Left(now); left >= 0 {
			end = now + int64(left)
		}
		if end == cl.end || end <= now {
			continue
		}
		cl.end = end
		c.note(&check.Event{Kind: check.Believe, Name: cl.hold.Grant.Name, Token: cl.hold.Grant.Token, Until: c.until(end)})
	}
}

// anew tells the history of acquires that the machine asks for as new requests.
func (c *member) anew() {
	open := c.errands[:0]
	for _, er := range c.errands {
		if er.done {
			continue
		}
		open = append(open, er)
		number := er.call.Req.Number
		if number == 0 { // it waits for a session, or for the proof of its grant
			continue
		}
		if er.number != 0 && (number != er.number || c.session != er.session) {
			c.w.count("acquire begun anew")
			c.note(&check.Event{Kind: check.Anew, Request: er.id})
		}
		er.number, er.session = number, c.session
	}
	c.errands = open
}

// until is when the client's clock shows a time, as the history counts.
func (c *member) until(end int64) int64 {
	if end >= never/2 {
		return check.Never
	}
	return max(c.real(end), c.w.now)
}

// ended is Claim.ended: the machine says that the hold is over.
func (cl *claim) ended() {
	c := cl.c
	cl.over = true
	for i, other := range c.claims {
		if other == cl {
			c.claims = append(c.claims[:i], c.claims[i+1:]...)
			break
		}
	}
	why := cl.hold.Why
	if why == nil {
		return // it was released: the Ask has told
	}
	c.w.tell("%s has lost %s token %d: %s %s", c.name, cl.hold.Grant.Name, cl.hold.Grant.Token, why.Reason, why.Why)
	e := &check.Event{Kind: check.Disbelieve, Name: cl.hold.Grant.Name, Token: cl.hold.Grant.Token}
	switch {
	case cl.end <= c.clock()+1, strings.Contains(why.Message, "3/4 of"): // the machine has not heard it, it has counted
		c.w.count("hold lost to time")
	case why.Reason == subjects.ReasonSession:
		c.w.count("hold lost with its session")
		c.sessionOver(why.Why)
	default:
		c.w.count("hold lost: " + why.Why)
		e.Kind, e.Why = check.Lost, why.Why
	}
	c.note(e)
}

// asked tells the history of a request, and gives the errand that is to be its owner. The answer is told before then is called.
func (c *member) asked(e check.Event, then func(r *mind.Result)) *errand {
	c.serial++
	er := &errand{id: itoa(c.serial)}
	e.Kind, e.Request = check.Ask, er.id
	c.w.count(e.Op.String())
	c.w.stats.Asks++
	c.note(&e)
	if c.w.telling {
		c.w.tell("%s asks %v %s (%s) token %d mode %v ttl %v wait %v", c.name, e.Op, e.Name, er.id, e.Token, e.Mode, e.TTL, e.Wait)
	}
	er.then = func(r *mind.Result) {
		er.done = true
		in := c.session
		if er.call == nil { // a tool's
			in = e.Session
		}
		c.answered(in, er.id, e.Op, e.Name, r)
		then(r)
	}
	return er
}

// answered tells the history of an answer; a grant is one in that session.
func (c *member) answered(in, id string, op subjects.Op, name string, r *mind.Result) {
	e := &check.Event{Kind: check.Answer, Request: id, Op: op, Name: name, Code: 200}
	c.w.stats.Answers++
	switch {
	case r.Refusal != nil:
		e.Code, e.Reason, e.Why = r.Refusal.Code, r.Refusal.Reason, r.Refusal.Why
		if e.Reason == subjects.ReasonSession {
			e.Session = cmp.Or(in, c.last)
		}
		c.tell("%s (%s of %s) is refused: %v", id, op, name, r.Refusal)
		if r.Refusal.Above > 0 {
			c.w.fail("%s is told that its request %s is refused for its number: %v", c.name, id, r.Refusal)
		}
	case r.Err != nil:
		e = &check.Event{Kind: check.GiveUp, Request: id}
		c.tell("%s (%s of %s) fails: %v", id, op, name, r.Err)
	case r.Grant != nil:
		g := r.Grant
		e.Token, e.Ticket, e.Key, e.TTL, e.Lease, e.Weak, e.Session = g.Token, g.Ticket, g.Key, g.TTL, g.Lease, !g.Durable, in
		c.tell("%s (%s of %s) is granted token %d ticket %d epoch %d ttl %v lease %v beat %d", id, op, name, g.Token, g.Ticket, g.Epoch,
			g.TTL, g.Lease, g.Beat)
	case r.Data == nil: // it was given up
		c.tell("%s (%s of %s) is over without an answer", id, op, name)
		e = &check.Event{Kind: check.GiveUp, Request: id}
	default:
		c.tell("%s (%s of %s) is answered %s", id, op, name, r.Data)
		c.body(e, op, r.Data)
	}
	c.note(e)
}

// tell adds to the story.
func (c *member) tell(format string, args ...any) {
	if c.w.telling {
		c.w.tell("%s", c.name+": "+fmt.Sprintf(format, args...))
	}
}

// body tells what an answer that is no grant says.
func (c *member) body(e *check.Event, op subjects.Op, data []byte) {
	switch op {
	case subjects.OpAcquire:
		if bytes.Contains(data, []byte(`"queued":true`)) {
			var body subjects.Queued
			c.reads(&body, data)
			e.Code, e.Ticket = 202, body.Ticket
			return
		}
		var g subjects.Grant
		c.reads(&g, data)
		e.Token, e.Ticket, e.Key, e.TTL, e.Lease, e.Weak = g.Token, g.Ticket, g.Key, g.TTL, g.Lease, !g.Durable
	case subjects.OpRelease:
		var body subjects.Released
		c.reads(&body, data)
		e.Token = body.Token
	case subjects.OpForce:
		var body subjects.Forced
		c.reads(&body, data)
		e.Token, e.Ended = body.Token, body.Ended
	case subjects.OpCancel:
		var body subjects.Cancelled
		c.reads(&body, data)
		e.Was, e.Token = body.Was, body.Token
		c.w.count("cancel of what was " + body.Was)
	}
}

// reads decodes an answer; there is none in a refusal.
func (c *member) reads(body interface{ DecodeJSON([]byte) error }, data []byte) bool {
	if data == nil {
		return false
	}
	if err := body.DecodeJSON(data); err != nil {
		c.w.fail("%s cannot read %q: %v", c.name, data, err)
		return false
	}
	return true
}

// seen tells the history of a lock that was looked at.
func (c *member) seen(rec *subjects.Record, since int64) {
	e := &check.Event{Kind: check.Seen, Name: rec.Name, Since: since, Part: rec.More > 0 || len(rec.Queue) < rec.Waiting}
	for i := range rec.Holders {
		e.Holders = append(e.Holders, check.Holder{Token: rec.Holders[i].Token, Client: rec.Holders[i].Holder})
	}
	for i := range rec.Queue {
		e.Queue = append(e.Queue, check.Waiter{Ticket: rec.Queue[i].Ticket, Client: rec.Queue[i].Holder})
	}
	c.note(e)
}
