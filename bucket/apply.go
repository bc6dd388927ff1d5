package bucket

import (
	"encoding/binary"
	"fmt"

	"github.com/opencluster/oclocks/subjects"
)

// Apply carries out a change that a primary's Step, or Promote, has made: on a replica, or from a journal. out gets the
// effects that the primary's step had; for a refusal or a query that changed nothing there was no change.
//
// Errors: ErrPrimary if the table was promoted, ErrChange if the change is malformed or not the next one for this table;
// then the table must be thrown away.
func (t *Table) Apply(change []byte, out *Output) error {
	if t.primary {
		return ErrPrimary
	}
	if t.broken != nil {
		return t.broken
	}
	seq, n := binary.Uvarint(change)
	if n <= 0 {
		return fmt.Errorf("%w: no sequence number", ErrChange)
	}
	if seq != t.seq+1 {
		return fmt.Errorf("%w: it has the number %d and the table is at %d", ErrChange, seq, t.seq)
	}
	t.begin(Now{}, out)
	t.change.open = true
	defer t.finish()
	c := coder{buf: change[n:], reading: true, answers: &t.answers}
	whole := t.oneText(c.buf)
	for len(c.buf) > 0 {
		var o op
		num(&c, &o.code, uint64(opLimit)-1)
		if c.whole = whole; o.code.keeps() {
			c.whole = ""
		}
		o.fields(&c)
		if c.bad {
			t.broken = fmt.Errorf("%w: %d is malformed", ErrChange, seq)
			return t.broken
		}
		switch {
		case o.code == opZone:
			t.atZone(o.zone)
			t.at.zone = t.openZone(o.zone)
			t.aboutZone()
		case o.code == opName:
			t.atName(o.name)
		case !t.apply(&o):
			t.broken = fmt.Errorf("%w: %d has an op %d that does not fit", ErrChange, seq, o.code)
			return t.broken
		}
	}
	return nil
}

// oneText is a change as one string, of which the texts of its ops are parts: for its effects, which live for some seconds, and for
// what only looks something up. A long change has a text each time, so that none keeps someone's data in memory.
func (t *Table) oneText(change []byte) string {
	const most = 512
	if len(change) > most {
		return ""
	}
	return t.made.Of(change)
}

// keeps says whether the table keeps texts of an op as they are. It copies those of others where it keeps one.
func (c opCode) keeps() bool { return c == opSeen || c == opEnqueue || c == opMove }

// aboutZone tells which zone the change is about, none if it is about several.
func (t *Table) aboutZone() {
	t.out.Zone = t.at.zone.name
	if t.change.zone != nil && t.change.zone != t.at.zone {
		t.out.Zone = ""
	}
	t.change.zone = t.at.zone
}

// apply carries out one op at the cursor; false if it does not fit what the table has.
func (t *Table) apply(o *op) bool {
	switch o.code {
	case opTerm:
		return t.applyTerm(o)
	case opSplit:
		return t.applySplit(o)
	}
	if t.at.zone == nil {
		return false
	}
	switch o.code {
	case opSeen:
		return t.applySeen(o)
	case opDone:
		return t.applyDone(o)
	case opForget:
		return t.applyForget(o)
	case opCloseSession:
		return t.applyCloseSession(o)
	case opDropSession:
		return t.applyDropSession(o)
	case opGrant:
		return t.applyGrant(o)
	case opEnqueue:
		return t.applyEnqueue(o)
	case opAdmit:
		return t.applyAdmit(o)
	case opEnd:
		return t.applyEnd(o)
	case opLeave:
		return t.applyLeave(o)
	case opMove:
		return t.applyMove(o)
	case opRenew:
		return t.applyRenew(o)
	case opForce:
		return t.applyForce(o)
	case opAnswer:
		return t.applyAnswer(o)
	case opPlace:
		return t.applyPlace(o)
	case opRecall:
		return t.applyRecall(o)
	case opForgetEnds:
		return t.at.zone.forgetEnds(int(o.number))
	}
	return false
}

// applyAnswer answers a request, remembers its outcome, or both.
func (t *Table) applyAnswer(o *op) bool {
	if o.body == nil {
		return false
	}
	t.complete(o.body)
	if o.request.op != subjects.OpNone {
		sid, s := t.sessionOf(o.session)
		if o.session != "" && (s == nil || s.user != o.user) {
			return false
		}
		id, ok := t.openEntry(o.request, o.user, sid)
		if !ok {
			return false
		}
		t.finishEntry(id, o.body, t.at.zone)
	}
	t.effect(Effect{Kind: Reply, Zone: t.at.zone.name, To: o.reply, Body: o.body})
	return true
}

// notifyOwner tells a session something.
func (t *Table) notifyOwner(s *session, e *subjects.SessionEvent) {
	t.effect(Effect{Kind: NotifyOwner, Zone: t.zones[s.zone].name, User: s.user, SessionID: s.id, Body: e})
}
