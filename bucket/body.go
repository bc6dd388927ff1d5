package bucket

import (
	"github.com/opencluster/oclocks/subjects"
)

// bodyKind says which answer follows. The numbers are part of the format of changes and snapshots.
type bodyKind uint8

const (
	bodyGrant bodyKind = iota + 1
	bodyReleased
	bodyQueued
	bodyCancelled
	bodyForced
	bodyRefusal
	bodySessionClosed
	bodyNone // remembered, not answered
)

// bodyFields writes or reads an answer. What the table adds itself is not in it: name, bucket and node. user and session
// are the caller's: a grant of the caller's own says so instead of repeating them.
func bodyFields(c *coder, body *subjects.Body, user, session string) {
	kind := kindOf(*body)
	num(c, &kind, uint64(bodyNone))
	if c.reading {
		*body = c.newBody(kind)
	}
	switch b := (*body).(type) {
	case *subjects.Grant:
		grantFields(c, b, user, session)
	case *subjects.Released:
		num(c, &b.Token, subjects.MaxToken)
		num(c, &b.Held, anyInt)
	case *subjects.Queued:
		num(c, &b.Ticket, anyUint)
		num(c, &b.Place, maxRecords)
		num(c, &b.Lease, anyInt)
	case *subjects.Cancelled:
		c.text(&b.Request, maxRequestID)
		c.text(&b.Was, subjects.MaxText)
		num(c, &b.Token, subjects.MaxToken)
	case *subjects.Forced:
		num(c, &b.Token, subjects.MaxToken)
		c.flag(&b.Ended)
		num(c, &b.Ends, anyInt)
	case *subjects.SessionClosed:
		num(c, &b.Released, maxRecords)
	case *subjects.Refusal:
		refusalFields(c, b)
	default:
		if kind != bodyNone {
			c.fail()
		}
	}
}

func kindOf(body subjects.Body) bodyKind {
	switch body.(type) {
	case *subjects.Grant:
		return bodyGrant
	case *subjects.Released:
		return bodyReleased
	case *subjects.Queued:
		return bodyQueued
	case *subjects.Cancelled:
		return bodyCancelled
	case *subjects.Forced:
		return bodyForced
	case *subjects.Refusal:
		return bodyRefusal
	case *subjects.SessionClosed:
		return bodySessionClosed
	}
	return bodyNone
}

func (c *coder) newBody(kind bodyKind) subjects.Body {
	switch kind {
	case bodyGrant:
		if c.answers != nil {
			return c.answers.grant()
		}
		return new(subjects.Grant)
	case bodyReleased:
		if c.answers != nil {
			return c.answers.release()
		}
		return new(subjects.Released)
	case bodyQueued:
		return new(subjects.Queued)
	case bodyCancelled:
		return new(subjects.Cancelled)
	case bodyForced:
		return new(subjects.Forced)
	case bodyRefusal:
		return new(subjects.Refusal)
	case bodySessionClosed:
		return new(subjects.SessionClosed)
	}
	return nil
}

func grantFields(c *coder, g *subjects.Grant, user, session string) {
	c.fixed(&g.Key) // with the token at the beginning: see grantedToken
	num(c, &g.Token, subjects.MaxToken)
	num(c, &g.Mode, uint64(subjects.Semaphore))
	num(c, &g.Kind, uint64(subjects.Connection))
	num(c, &g.Slots, subjects.MaxSlots)
	num(c, &g.Take, subjects.MaxSlots)
	num(c, &g.TTL, uint64(subjects.MaxTTL))
	num(c, &g.Lease, anyInt)
	num(c, &g.Epoch, anyUint)
	num(c, &g.Ticket, anyUint)
	num(c, &g.Waited, anyInt)
	num(c, &g.Beat, anyUint)
	c.flag(&g.Durable)
	own := g.User == user && g.Session == session
	c.flag(&own)
	if !own {
		c.text(&g.User, maxUser)
		c.text(&g.Session, maxSessionID)
	} else if c.reading {
		g.User, g.Session = user, session
	}
}

func refusalFields(c *coder, r *subjects.Refusal) {
	num(c, &r.Code, 999)
	c.text(&r.Reason, subjects.MaxText)
	c.text(&r.Message, maxReply)
	c.text(&r.Field, subjects.MaxText)
	c.text(&r.Why, subjects.MaxText)
	c.text(&r.Holder, subjects.MaxOpaque)
	num(c, &r.Since, anyInt)
	num(c, &r.Queue, maxRecords)
	c.flag(&r.HasQueue)
	num(c, &r.RetryAfter, anyInt)
}

// packBody is the binary form of an answer, to be remembered.
func (t *Table) packBody(body subjects.Body, user, session string) []byte {
	c := coder{buf: t.outcomes.take()}
	bodyFields(&c, &body, user, session)
	return c.buf
}

// unpackBody reads what packBody has written; ok is false if that is malformed.
func unpackBody(b []byte, user, session string) (body subjects.Body, ok bool) {
	c := coder{buf: b, reading: true}
	bodyFields(&c, &body, user, session)
	return body, !c.bad && len(c.buf) == 0
}

// grantedToken is the token of a remembered grant, 0 if the answer is another one. It reads no more than that.
func grantedToken(b []byte) (token uint64) {
	c := coder{buf: b, reading: true}
	var kind bodyKind
	var key uint64
	if num(&c, &kind, uint64(bodyNone)); kind == bodyGrant {
		c.fixed(&key)
		num(&c, &token, subjects.MaxToken)
	}
	return token
}
