package broker

import (
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker/parking"
	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/subjects"
)

// asker is whom an answer of a bucket goes to. A bucket answers in the order of its requests; two buckets do not.
type asker struct {
	zone, reply string
	bucket      uint32
}

func (t *task) asker() asker { return asker{t.in.Zone, t.in.Reply, t.bucket} }

// passable says whether a request is answered once and soon, and its answer is short: the others are told what has become of them
// by whoever is the primary then, over NATS.
func (t *task) passable() bool {
	switch t.req.Op {
	case subjects.OpAcquire:
		return !t.waits()
	case subjects.OpRelease, subjects.OpRenew, subjects.OpCheck:
		return true
	}
	return false
}

// waits says whether a request may be answered much later, by whoever is the primary then.
func (t *task) waits() bool {
	return t.req.Op == subjects.OpAcquire && (t.req.Has&subjects.HasWait != 0 || t.req.Enqueue || t.req.Recall)
}

// repeatable says whether asking once more is no second effect.
func (t *task) repeatable() bool {
	return t.req.RequestID != "" || t.req.Number != 0 || t.req.Op == subjects.OpCheck || t.req.Op == subjects.OpQuery
}

// follow keeps a request that its bucket has taken, until what it has changed is confirmed.
func (s *shard) follow(t *task, c *cell) {
	if t.via != nil {
		s.keep(t)
	}
	c.Wait(t)
}

// keep has the answer to a request that was passed on find it.
func (s *shard) keep(t *task) {
	key := t.asker()
	last := s.passed[key]
	if last == nil {
		s.passed[key] = t
		return
	}
	for last.twin != nil {
		last = last.twin
	}
	last.twin = t
}

// unfollow gives the request that was passed on and that an answer is for; nil: there is none. One that waits may have the same reply
// subject: then its grant goes the way of this one, and this one's answer the way of that, to the same subject.
func (s *shard) unfollow(key asker) *task {
	t := s.passed[key]
	switch {
	case t == nil:
	case t.twin != nil:
		s.passed[key], t.twin = t.twin, nil
	default:
		delete(s.passed, key)
	}
	return t
}

// forget takes out a request that was passed on and is not answered here. False: it was answered.
func (s *shard) forget(t *task) bool {
	key := t.asker()
	for at, before := s.passed[key], (*task)(nil); at != nil; at, before = at.twin, at {
		switch {
		case at != t:
			continue
		case before != nil:
			before.twin = t.twin
		case t.twin != nil:
			s.passed[key] = t.twin
		default:
			delete(s.passed, key)
		}
		t.twin = nil
		return true
	}
	return false
}

// confirmed is called when what a request has changed is confirmed, or will never be as far as this node knows.
func (s *shard) confirmed(t *task, lost bool) {
	open := t.via != nil && s.forget(t)
	switch {
	case lost && (open || t.via == nil):
		s.d.unsure(t)
		return
	case open:
		s.forgo(t, passDone)
		return
	}
	s.finished = append(s.finished, t)
}

// forgo ends a request that this node answers no more, and tells the one that has passed it on, if one has, what is to become of it.
func (s *shard) forgo(t *task, kind byte) {
	if t.via != nil {
		t.via.note(kind, t.number)
		s.flushed(t.via)
	}
	s.finished = append(s.finished, t)
}

// unsure takes a request of which nobody knows whether it was carried out: its node has gone, or its bucket has another primary.
// If that does no harm it is asked again. Else whoever has carried it out may still tell; if nobody has by then, its caller is told that
// nobody knows. One that waits for a lock may stand in the queue, and is told of its grant by whoever is the primary then; it
// knows itself when it has waited long enough.
func (d *Daemon) unsure(t *task) {
	switch {
	case t.repeatable():
		t.again()
	case t.waits():
		t.free()
	case !t.zone.aside.put(t):
		t.refuse(unknown())
	default:
		time.AfterFunc(parking.Time, func() {
			t.zone.aside.take(t)
			t.refuse(unknown())
		})
	}
}

// again has the bucket's shard decide anew about a request.
func (t *task) again() {
	switch {
	case t.zone.d.drained.Load(): // perhaps nobody takes it any more
		t.refuse(stopping())
	case !t.zone.d.shardOf(t.bucket).queue.put(t):
		t.refuse(overloaded())
	}
}

// putOffMost is the longest that a request is put off at a time.
const putOffMost = 100 * time.Millisecond

// putOff has it decide a little later, each time twice as much, but not for ever.
func (t *task) putOff() {
	now := boottime.Now()
	if t.late == 0 {
		t.late, t.pause = now+int64(parking.Time), parking.LingerStep
	}
	if now > t.late {
		t.refuse(noPrimary())
		return
	}
	pause := t.pause
	t.pause = min(2*pause, putOffMost)
	if !t.zone.aside.put(t) {
		t.refuse(overloaded())
		return
	}
	time.AfterFunc(pause, func() { // the task is not ours any more
		t.zone.aside.take(t)
		t.again()
	})
}

// aside is how much of a zone nobody has: it waits until its time has come. What comes beyond is told so at once.
type aside struct{ requests, bytes atomic.Int64 }

func (a *aside) put(t *task) bool {
	requests, bytes := a.requests.Add(1), a.bytes.Add(int64(t.size))
	if requests > int64(parking.DefaultLimits.Requests) || bytes > int64(parking.DefaultLimits.Bytes) {
		a.take(t)
		return false
	}
	return true
}

func (a *aside) take(t *task) {
	a.requests.Add(-1)
	a.bytes.Add(-int64(t.size))
}

// refuse answers a request that no shard has.
func (t *task) refuse(refusal *subjects.Refusal) {
	t.answer(t.req.Op, refusal, nil)
	t.flush()
	t.free()
}

// done is that somebody else answers a request, or nobody.
func (t *task) done() {
	if t.via != nil {
		t.via.note(passDone, t.number)
		t.via.flush()
	}
	t.free()
}

// answer tells the caller of a request, by the node that has passed it on. It returns the scratch.
func (t *task) answer(op subjects.Op, body subjects.Body, scratch []byte) []byte {
	if t.via == nil {
		return t.zone.answer(op, t.in.Reply, body, scratch)
	}
	code, text, scratch := t.zone.write(op, body, scratch)
	t.tell(code, text, scratch)
	return scratch
}

// tell tells it what is written already. Where the link is over, the other node has asked again or told that nobody knows; an
// answer does no harm.
func (t *task) tell(code, text string, body []byte) {
	if t.via == nil || !t.via.answer(t.number, code, text, body) {
		t.zone.send(t.in.Reply, code, text, body)
	}
}

// flush sends what was told, if it goes over a passage.
func (t *task) flush() {
	if t.via != nil {
		t.via.flush()
	}
}

// flushed has a passage send what it has, at the end of the batch.
func (s *shard) flushed(p *passage) {
	for _, known := range s.passages {
		if known == p {
			return
		}
	}
	s.passages = append(s.passages, p)
}

// write writes a reply or a refusal into the scratch, and counts it. The code is "" for a reply.
func (z *zone) write(op subjects.Op, body subjects.Body, scratch []byte) (code, text string, written []byte) {
	scratch = body.AppendJSON(scratch[:0])
	refusal, refused := body.(*subjects.Refusal)
	if !refused {
		z.d.metrics.answered(0)
		return "", "", scratch
	}
	z.d.metrics.answered(refusal.Code)
	if op != subjects.OpNone {
		z.stats.refused(op)
	}
	code, text = refusal.Headers()
	return code, text, scratch
}

// send publishes what was written.
func (z *zone) send(reply, code, text string, body []byte) {
	if code == "" {
		z.publish(reply, body)
		return
	}
	msg := &nats.Msg{Subject: reply, Data: body, Header: nats.Header{subjects.HeaderErrorCode: {code}, subjects.HeaderError: {text}}}
	if err := z.conn.PublishMsg(msg); err != nil {
		z.unsent(err)
	}
}

func unknown() *subjects.Refusal {
	return &subjects.Refusal{Code: 503, Reason: subjects.ReasonUnavailable, RetryAfter: parking.Time,
		Message: "the node that was asked has gone before it answered, and the request has no id: it may have been carried out"}
}
