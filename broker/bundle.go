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
	keeps := bundledKeeps{left: &requests}
	for {
		reply, token, body, more := requests.Next(&z.texts)
		op, _ := subjects.ParseOp(string(token))
		if !more || op != subjects.OpKeep {
			keeps.ask(z)
		}
		switch {
		case !more:
			z.pen.sheaves.send()
			return scratch
		case !op.Bundled():
			z.pen.sheaves.put(z, reply, notBundled())
		default:
			session = z.bundled(user, reply, session, op, body, &keeps)
		}
	}
}

// bundledKeeps are keep-alives of a bundle that are next to each other.
type bundledKeeps struct {
	*keeping
	size int
	left *subjects.Requests
}

// ask has the shards asked about them.
func (b *bundledKeeps) ask(z *zone) {
	if b.keeping != nil {
		z.keep(b.keeping, b.size)
		b.keeping, b.size = nil, 0
	}
}

// bundled takes one request of a bundle. Its reply subject is below the same inbox as the bundle's, so it is the caller's own. Most have the
// same session, whose text goes from one to the next.
func (z *zone) bundled(user, reply, before string, op subjects.Op, body []byte, keeps *bundledKeeps) (session string) {
	z.stats.requested(op)
	z.d.metrics.bundled.Inc()
	t := newTask(taskOne, z)
	t.size = len(body)
	t.in = bucket.Input{Kind: bucket.Request, Zone: z.name, User: user, Reply: reply}
	t.req.Session = before
	refusal := z.decodeBundled(t, op, body)
	session = t.req.Session
	switch {
	case refusal != nil:
	case op == subjects.OpKeep:
		if keeps.keeping == nil {
			keeps.keeping = newKeeping(keeps.left.Left() + 1)
		}
		keeps.add(t, false, false)
		keeps.size += t.size
		t.free()
	case !z.d.shardOf(t.bucket).queue.put(t):
		refusal = overloaded()
	}
	if refusal != nil {
		t.free()
		z.pen.answer(z, op, reply, refusal)
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
	if refusal := z.verify(t); refusal != nil {
		return refusal
	}
	if op == subjects.OpKeep {
		return z.withSession(t)
	}
	t.bucket = subjects.BucketOf(t.req.Name, uint32(z.d.buckets()))
	return nil
}

func notBundled() *subjects.Refusal {
	return &subjects.Refusal{Code: 400, Reason: subjects.ReasonBadRequest,
		Message: "a request of a bundle begins with acquire, release, renew, cancel or keep, and a blank; send others by themselves"}
}
