package broker

import (
	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

// bundle takes a bundle: each of its requests as if it had come by itself, on the subject of its bucket.
func (z *zone) bundle(msg *nats.Msg, user string, scratch []byte) []byte {
	if !z.mayAnswer(msg.Reply, user) {
		z.d.metrics.ignored.Inc()
		return scratch
	}
	if len(msg.Data) == 0 {
		return z.answer(subjects.OpNone, msg.Reply, subjects.OwnBundleLimits(), scratch)
	}
	requests, refusal := subjects.OpenBundle(msg.Reply, msg.Data)
	if refusal != nil {
		return z.answer(subjects.OpNone, msg.Reply, refusal, scratch)
	}
	session := ""
	for {
		reply, op, body, more := requests.Next(&z.texts)
		if !more {
			z.sheaves.send()
			return scratch
		}
		session = z.bundled(user, reply, session, op, body)
	}
}

// bundled takes one request of a bundle. Its reply subject is below the same inbox as the bundle's, so it is the caller's own. Most have the
// same session, whose text goes from one to the next.
func (z *zone) bundled(user, reply, before string, token, body []byte) (session string) {
	op, _ := subjects.ParseOp(string(token))
	if !op.Bundled() {
		z.sheaves.put(z, reply, notBundled())
		return before
	}
	z.stats.requested(op)
	z.d.metrics.bundled.Inc()
	t := newTask(taskOne, z)
	t.size = len(body)
	t.in = bucket.Input{Kind: bucket.Request, Zone: z.name, User: user, Reply: reply}
	t.req.Session = before
	refusal := z.decodeBundled(t, op, body)
	session = t.req.Session
	if refusal == nil && !z.d.shardOf(t.bucket).queue.put(t) {
		refusal = overloaded()
	}
	if refusal != nil {
		t.free()
		z.stats.refused(op)
		z.sheaves.put(z, reply, refusal)
	}
	return session
}

func (z *zone) decodeBundled(t *task, op subjects.Op, body []byte) *subjects.Refusal {
	if z.stopping.Load() {
		return stopping()
	}
	if refusal := t.req.DecodeWith(&z.texts, op, body); refusal != nil {
		return refusal
	}
	t.bucket = subjects.BucketOf(t.req.Name, uint32(z.d.buckets()))
	return z.verify(t)
}

func notBundled() *subjects.Refusal {
	return &subjects.Refusal{Code: 400, Reason: subjects.ReasonBadRequest,
		Message: "a request of a bundle begins with acquire, release, renew or cancel, and a blank; send others by themselves"}
}
