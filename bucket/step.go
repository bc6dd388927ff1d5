package bucket

import (
	"encoding/binary"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// Step feeds one input to a primary. It decides, writes what it decides as ops into out.Change, and applies each op at once
// with the code that replicas apply it with. Every request is answered by exactly one Reply effect: in this Step, or for
// one that waits in a later one. A table that is not primary answers requests with 503 and ignores the rest.
func (t *Table) Step(now Now, in *Input, out *Output) {
	effects := len(out.Effects)
	t.begin(now, out)
	switch {
	case t.broken != nil || !t.primary:
		if in.Kind == Request {
			t.effect(Effect{Kind: Reply, Zone: in.Zone, To: in.Reply, Body: notPrimary()})
		}
	case in.Kind == Request:
		t.request(in)
	case in.Kind == Disconnect:
		t.disconnect(in)
	case in.Kind == Tick:
		t.tick()
	case in.Kind == Heard:
		t.tellHeard()
	case in.Kind == Stop:
		t.stop(in)
	case in.Kind == Split:
		t.split(in)
	}
	if t.broken != nil && t.change.open {
		// What was done so far must not be seen from outside.
		clear(out.Effects[effects:])
		out.Effects = out.Effects[:effects]
		out.Change = out.Change[:0]
		t.change.open = false
		if in.Kind == Request {
			t.effect(Effect{Kind: Reply, Zone: in.Zone, To: in.Reply, Body: notPrimary()})
		}
	}
	t.finish()
}

// progress is how far the change of a step has been written.
type progress struct {
	open bool
	zone *zone // that opZone has named
	name string
	by   *call // whose session the change must tell of first
}

// maxWall, in the year 2248, is the latest wall time that the table takes from a clock that is wrong: a span of wall time
// must be countable in nanoseconds, or the change that has it could not be read again.
const maxWall = 1 << 43

// begin prepares for one step.
func (t *Table) begin(now Now, out *Output) {
	now.Wall = min(max(now.Wall, 0), maxWall)
	now.Boot = max(now.Boot, t.now.Boot)
	t.now, t.out, t.at, t.change = now, out, cursor{}, progress{}
	out.Change, out.Zone, out.Other = out.Change[:0], "", nil
}

// finish closes the change.
func (t *Table) finish() {
	if t.change.open {
		t.seq++
	}
	t.out.Seq = t.seq
	t.out, t.at, t.change, t.call = nil, cursor{}, progress{}, call{}
}

// do writes an op about what is at the cursor into the change and applies it.
func (t *Table) do(o *op) {
	if t.broken != nil {
		return
	}
	if !t.change.open {
		t.change.open = true
		t.out.Change = binary.AppendUvarint(t.out.Change, t.seq+1)
		if t.change.by != nil {
			t.introduce(t.change.by)
		}
	}
	if o.code != opTerm && o.code != opSplit {
		t.locate(o.code)
	}
	t.write(o)
	if !t.apply(o) {
		t.fail("op %d about %q does not fit", o.code, t.at.name)
	}
	if o.code == opAdmit || o.code == opLeave {
		t.change.name = t.at.name // a replica's cursor has gone to the waiter's lock too
	}
}

// locate writes the zone and the name that an op is about, unless the change has named them already.
func (t *Table) locate(code opCode) {
	if t.at.zone == nil {
		t.at.zone = t.openZone(t.at.zoneName)
	}
	if t.change.zone != t.at.zone {
		t.out.Zone = t.at.zone.name
		if t.change.zone != nil {
			t.out.Zone = ""
		}
		t.change.zone, t.change.name = t.at.zone, ""
		t.writeText(opZone, &t.at.zone.name, maxZone)
	}
	if code.named() && t.change.name != t.at.name {
		t.change.name = t.at.name
		t.writeText(opName, &t.at.name, subjects.MaxName)
	}
}

// named says whether an op is about the name at the cursor. The others find what they are about by their fields.
func (c opCode) named() bool {
	switch c {
	case opGrant, opEnqueue, opEnd, opRenew, opForce, opRecall, opAnswer:
		return true
	}
	return false
}

// writeText is write for an op that has a text only; most changes have two of them.
func (t *Table) writeText(code opCode, text *string, limit int) {
	c := coder{buf: t.out.Change}
	num(&c, &code, anyUint8)
	c.text(text, limit)
	t.out.Change = c.buf
}

func (t *Table) write(o *op) {
	c := coder{buf: t.out.Change}
	num(&c, &o.code, anyUint8)
	o.fields(&c)
	t.out.Change = c.buf
}

// effect adds an effect. A reply that nobody awaits is none.
func (t *Table) effect(e Effect) {
	if e.Kind == Reply && e.To == "" {
		return
	}
	t.out.Effects = append(t.out.Effects, e)
}

// recovering says whether nothing may be granted yet.
func (t *Table) recovering() bool { return t.now.Boot < t.recoverUntil }

// after is a time from now, never rather than one that cannot be counted.
func (t *Table) after(d time.Duration) int64 {
	if int64(d) > never-t.now.Boot {
		return never
	}
	return t.now.Boot + int64(d)
}

// call is the request in progress.
type call struct {
	in        *Input
	req       *subjects.Request
	session   uint32  // the caller's session, 0 if it has none or the table does not know it yet
	request   request // its idempotency id, zero if it has none
	anonymous bool    // its session is not entered: the zone has too many
}

// sessionID is the id of the session that the call counts as made in, "" if none.
func (c *call) sessionID() string {
	if c.anonymous {
		return ""
	}
	return c.in.Session.ID
}

// request carries out one client's request.
func (t *Table) request(in *Input) {
	t.call = call{in: in, req: in.Req}
	c := &t.call
	if !in.wellFormed() {
		t.refuse(c, badRequest("", "the request cannot be carried out as it came from the edge"))
		return
	}
	t.atZone(in.Zone)
	if refusal := t.admissible(c); refusal != nil {
		t.refuse(c, refusal)
		return
	}
	switch in.Req.Op {
	case subjects.OpAcquire:
		t.acquire(c)
	case subjects.OpRelease:
		t.release(c)
	case subjects.OpRenew:
		t.renew(c)
	case subjects.OpCancel:
		t.cancel(c)
	case subjects.OpQuery:
		t.query(c)
	case subjects.OpCheck:
		t.check(c)
	case subjects.OpForce:
		t.force(c)
	case subjects.OpSessionClose:
		t.sessionClose(c)
	case subjects.OpReclaim:
		t.reclaim(c)
	default:
		t.refuse(c, badRequest("", "a lock table has no operation "+in.Req.Op.String()))
	}
}

// wellFormed says whether the edge has done its part: nothing beyond this could be written into a change and read back.
func (in *Input) wellFormed() bool {
	return in.Req != nil && len(in.Zone) <= maxZone && len(in.User) <= maxUser && len(in.Reply) <= maxReply &&
		len(in.Session.ID) <= maxSessionID && len(in.Session.Conn.Server) <= maxUser &&
		(in.Session.ID == "" || in.Session.Incarnation > 0)
}

// admissible checks what all requests have in common, and points the cursor at the name.
func (t *Table) admissible(c *call) *subjects.Refusal {
	if c.req.Op.OnName() {
		switch n := len(c.req.Name); {
		case n == 0:
			return badRequest("name", "name is empty; send 1 to 4096 bytes")
		case n > subjects.MaxName:
			return tooLarge("name", "name is longer than 4096 bytes")
		}
		t.atName(c.req.Name)
	}
	if c.in.Session.ID == "" {
		return nil
	}
	return t.admitSession(c)
}

// refuse answers a request that changes nothing and is not remembered: repeated, it is looked at anew.
func (t *Table) refuse(c *call, r *subjects.Refusal) { t.reply(c, r) }

// reply answers without remembering it. It makes no change, but is part of one that there is already.
func (t *Table) reply(c *call, body subjects.Body) {
	if t.change.open {
		c.request = request{}
		t.answer(c, body)
		return
	}
	t.effect(Effect{Kind: Reply, Zone: c.in.Zone, To: c.in.Reply, Body: body})
}

// answer answers a request, remembers the answer if the request has an id, and takes it into the change if there is one,
// so that replicas have it too.
func (t *Table) answer(c *call, body subjects.Body) {
	if c.request.op == subjects.OpNone && !t.change.open {
		t.reply(c, body)
		return
	}
	o := op{code: opAnswer, body: body}
	o.session, o.user, o.reply, o.request = c.sessionID(), c.in.User, c.in.Reply, c.request
	t.do(&o)
}
