package broker

import (
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

// maxUnsent is for how many messages what was passed on waits in a zone that never pauses.
const maxUnsent = 64

// pump takes the zone's messages one by one: check, decode, answer or queue.
func (z *zone) pump() {
	defer close(z.done)
	var scratch []byte
	unsent := 0
	for {
		select {
		case msg := <-z.inbox:
			if msg.Sub == lastMessage {
				z.flush()
				z.through <- struct{}{}
				continue
			}
			scratch = z.receive(msg, scratch)
			if len(z.passages) == 0 {
				continue
			}
			if unsent++; len(z.inbox) == 0 {
				runtime.Gosched()
			}
			if len(z.inbox) == 0 || unsent >= maxUnsent {
				z.flush()
				unsent = 0
			}
		case <-z.quit:
			return
		}
	}
}

// receive handles one message. A request that is not answered at all is one with no reply subject, or with one that is
// not the caller's own inbox: the broker publishes for nobody anywhere else.
func (z *zone) receive(msg *nats.Msg, scratch []byte) []byte {
	if strings.HasPrefix(msg.Subject, "$SRV.") {
		return z.service(msg, scratch)
	}
	if strings.HasPrefix(msg.Subject, forwardPrefix) {
		if msg = z.forwarded(msg); msg == nil {
			return scratch
		}
	}
	if user, ok := strings.CutPrefix(msg.Subject, z.bundles); ok {
		return z.bundle(msg, user, scratch)
	}
	if rest, ok := strings.CutPrefix(msg.Subject, z.here); ok && !z.simple(msg, rest) {
		return scratch
	}
	addr, err := subjects.ParseAddress(msg.Subject)
	user := addr.User
	if err != nil {
		user = lastToken(msg.Subject)
	}
	z.asked(addr, msg)
	if !z.mayAnswer(msg.Reply, user) {
		z.d.metrics.ignored.Inc()
		return scratch
	}
	if err != nil {
		return z.answer(subjects.OpNone, msg.Reply, badSubject(err), scratch)
	}
	// Every node has its own copy of a keep-alive by the subscription without a group, and one of them has it by the other.
	everybody := addr.Op == subjects.OpKeep && addr.Path == subjects.Simple
	group := msg.Sub != nil && msg.Sub.Queue != ""
	if everybody && group && z.d.alone() {
		return scratch
	}
	if !everybody || !group {
		z.stats.requested(addr.Op)
	}
	t := newTask(taskOne, z)
	t.size, t.trip.Hops = len(msg.Data), hops(addr, msg)
	if refusal := z.prepare(t, addr, msg); refusal != nil {
		t.free()
		if everybody && !group && !z.d.alone() {
			return scratch // the one that was chosen says so
		}
		return z.answer(addr.Op, msg.Reply, refusal, scratch)
	}
	if body := z.local(t); body != nil {
		t.free()
		return z.answer(addr.Op, msg.Reply, body, scratch)
	}
	if refusal := z.dispatch(t, addr, group); refusal != nil {
		t.free()
		return z.answer(addr.Op, msg.Reply, refusal, scratch)
	}
	return scratch
}

// mayAnswer says whether a reply subject is the caller's own inbox. An unnamed caller in a zone with users has the inbox
// of "anyone", which all of them may listen to, so that nobody makes the broker publish into another's.
func (z *zone) mayAnswer(reply, user string) bool {
	return subjects.ValidReply(reply, user, !z.private())
}

// prepare decodes the request and verifies its session.
func (z *zone) prepare(t *task, addr subjects.Address, msg *nats.Msg) *subjects.Refusal {
	if z.stopping.Load() {
		return stopping()
	}
	var refusal *subjects.Refusal
	if addr.Path == subjects.Simple || addr.Path == subjects.Unnamed {
		refusal = t.req.DecodeSimple(addr.Op, msg.Data, msg.Header)
	} else {
		refusal = t.req.DecodeWith(&z.texts, addr.Op, msg.Data)
	}
	if refusal != nil {
		return refusal
	}
	t.in = bucket.Input{Kind: bucket.Request, Zone: z.name, User: addr.User, Reply: msg.Reply}
	return z.verify(t)
}

// verify finds out whose session a request names, if it names one.
func (z *zone) verify(t *task) *subjects.Refusal {
	if t.req.Session == "" {
		return nil
	}
	session, err := z.sessions.Verify(t.in.User, t.req.Session)
	if err != nil {
		return &subjects.Refusal{Code: 410, Reason: subjects.ReasonSession, Field: "session",
			Message: "session: " + err.Error() + "; open a new one with session-open"}
	}
	t.in.Session = session
	return nil
}

// dispatch queues the task for the shard of its bucket, or for all shards, or for a goroutine that asks other nodes. It
// takes the task over unless it refuses the request.
func (z *zone) dispatch(t *task, addr subjects.Address, group bool) *subjects.Refusal {
	op := addr.Op
	buckets := uint32(z.d.buckets())
	switch {
	case op.OnName():
		t.bucket = subjects.BucketOf(t.req.Name, buckets)
		if addr.Path == subjects.Hot && addr.Bucket != t.bucket && t.trip.Hops == 0 { // another node may count fewer buckets
			return z.misplaced(t.bucket, addr.Bucket)
		}
	case addr.Path == subjects.Hot && op == subjects.OpSessionClose && addr.Bucket < buckets:
		t.bucket = addr.Bucket
	case addr.Path == subjects.Hot:
		return &subjects.Refusal{Code: 400, Reason: subjects.ReasonBadRequest,
			Message: op.String() + " is not about one bucket: send it to " + subjects.SimpleSubject(op, addr.User)}
	case op == subjects.OpKeep:
		k := newKeeping(1)
		k.add(t, addr.Path == subjects.Simple && !z.d.alone(), group)
		z.keep(k, t.size)
		t.free()
		return nil
	case op == subjects.OpPing:
		return z.pingAt(t)
	default:
		return z.ask(t)
	}
	if z.passOn(t) {
		return nil
	}
	if !z.d.shardOf(t.bucket).queue.put(t) {
		return overloaded()
	}
	return nil
}

func stopping() *subjects.Refusal {
	return &subjects.Refusal{Code: 503, Reason: subjects.ReasonUnavailable, Why: subjects.WhyStopping,
		RetryAfter: time.Second, Message: "this node is stopping; ask again at another node or when it is back"}
}

func overloaded() *subjects.Refusal {
	return &subjects.Refusal{Code: 503, Reason: subjects.ReasonUnavailable, Why: subjects.WhyOverloaded,
		RetryAfter: 100 * time.Millisecond, Message: "this node takes no more requests of this zone now: too many wait, or it stands still; ask again a little later"}
}

func badSubject(err error) *subjects.Refusal {
	return &subjects.Refusal{Code: 400, Reason: subjects.ReasonBadRequest, Message: err.Error()}
}

// misplaced answers who asked the wrong bucket about a name.
func (z *zone) misplaced(right, asked uint32) *subjects.Refusal {
	m := z.d.bucketMap()
	return &subjects.Refusal{Code: 421, Reason: subjects.ReasonMoved, Map: &m,
		Message: fmt.Sprintf("the name belongs to bucket %d, not %d, of %d", right, asked, z.d.buckets())}
}

// moved answers who asked the wrong node.
func (z *zone) moved(number uint32) *subjects.Refusal {
	m := z.d.bucketMap()
	return &subjects.Refusal{Code: 421, Reason: subjects.ReasonMoved, Map: &m,
		Message: fmt.Sprintf("bucket %d has another primary now; ask again on the same subject", number)}
}

func lastToken(subject string) string { return subject[strings.LastIndexByte(subject, '.')+1:] }
