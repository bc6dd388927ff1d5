package broker

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/subjects"
)

// A queue group picks any of its members in the cluster for a request, and not the one at the caller's own server. So each server has
// its clients' simple requests go to a subject that only its own node listens to: that saves a way between two servers for most of
// them, and the node that passes a request on has heard of the caller's inbox before anybody (forwardPrefix). The subject is one
// that whoever may send the request may publish on, and "@" begins no number of a bucket.
func herePrefix(node uint64) string { return "locks.b.@" + strconv.FormatUint(node, 10) + "." }

// nobodyToken is in the place of an operation where NATS tells that nobody listens to what was passed on.
const nobodyToken = "nobody"

// comeHere has the requests of this server's clients come to this node, which listens. It ends with retire: the others of the queue
// group take them then.
func (z *zone) comeHere() error {
	z.turnMu.Lock()
	defer z.turnMu.Unlock()
	if z.quiet || z.apart || !z.d.settings.Clustered() {
		return nil
	}
	to := make(map[string]string)
	for _, op := range []subjects.Op{subjects.OpAcquire, subjects.OpRelease, subjects.OpRenew, subjects.OpCheck} {
		to[subjects.SimplePattern(op)] = z.here + op.String() + ".{{wildcard(1)}}"
	}
	return z.d.nats.Here(z.name, to)
}

// goAway ends that. The lock is held.
func (z *zone) goAway() {
	if err := z.d.nats.Here(z.name, nil); err != nil {
		z.d.log.Debug("a zone's requests", "zone", z.name, "error", err)
	}
}

// simple makes a message that came here one of the simple path. False: it is none, and was dealt with.
func (z *zone) simple(msg *nats.Msg, rest string) bool {
	op, last, _ := strings.Cut(rest, ".")
	if op != nobodyToken {
		msg.Subject = "locks." + rest
		return true
	}
	if number, err := strconv.ParseUint(last, 10, 64); err == nil && msg.Header.Get("Status") == "503" {
		z.unheard(number)
	}
	return false
}

// nobody is where NATS says that nobody listens.
func (z *zone) nobody(number uint64) string {
	return z.here + nobodyToken + "." + strconv.FormatUint(number, 10)
}

// unheard has a request that was passed on and that nobody has heard decided about once more: the other node, or the route to it, is
// not there, or not yet.
func (z *zone) unheard(number uint64) {
	if t := z.outward.take(number); t != nil {
		t.putOff()
	}
}

const (
	outwardTime = 500 * time.Millisecond // NATS says that nobody listens at once
	maxOutward  = 4096                   // of requests that are kept for that
)

// outward are the requests of a zone that were passed on over NATS lately.
type outward struct {
	mu         sync.Mutex
	last       uint64
	young, old map[uint64]*task
	sweeps     bool
}

// put takes a request over, and gives it a number. False: there are too many of them.
func (o *outward) put(t *task) (number uint64, kept bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last++
	if len(o.young) >= maxOutward {
		return o.last, false
	}
	if o.young == nil {
		o.young = make(map[uint64]*task)
	}
	o.young[o.last] = t
	if !o.sweeps {
		o.sweeps = true
		time.AfterFunc(outwardTime, o.sweep)
	}
	return o.last, true
}

// take gives a request back; nil: it is not kept.
func (o *outward) take(number uint64) *task {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, some := range []map[uint64]*task{o.young, o.old} {
		if t := some[number]; t != nil {
			delete(some, number)
			return t
		}
	}
	return nil
}

// sweep forgets what was put before the last sweep.
func (o *outward) sweep() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range o.old { // order: each by itself
		t.free()
	}
	o.old, o.young = o.young, nil
	if o.sweeps = len(o.old) > 0; o.sweeps {
		time.AfterFunc(outwardTime, o.sweep)
	}
}
