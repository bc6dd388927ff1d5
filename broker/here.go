package broker

import (
	"encoding/base64"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker/natsd"
	"github.com/opencluster/oclocks/subjects"
)

// A queue group picks any of its members in the cluster for a request, and not the one at the caller's own server. So each server has
// its clients' simple requests go to a subject that only its own node listens to: that saves a way between two servers for most of
// them, and the node that passes a request on has heard of the caller's inbox before anybody (forwardPrefix). The subject is one
// that whoever may send the request may publish on, and "@" begins no number of a bucket.
//
// While an account has such a mapping its server takes apart the subject of each message that any of its clients sends, the broker's
// answers too, and compares it. That was 4 to 5.5 % of all that daemons did for pairs of 64 workers who never use the simple path. So it
// begins when such requests come often, and then it stays: each change is one of the account.
func herePrefix(node uint64) string { return "locks.b.@" + strconv.FormatUint(node, 10) + "." }

// nobodyToken is in the place of an operation where NATS tells that nobody listens to what was passed on.
const nobodyToken = "nobody"

// The rate at which simple requests are worth it. They come to each node in turn until then.
const (
	simpleBusy   = 16
	simpleWindow = time.Second
)

// simpleRate is how many simple requests came lately. Only the pump touches it, but where it says otherwise.
type simpleRate struct {
	since time.Time
	asked int
	often bool

	failed atomic.Bool // what was to be done about it; set by whoever tried
}

// counted says whether it has just turned out that they come often.
func (r *simpleRate) counted(now time.Time) bool {
	if now.Sub(r.since) > simpleWindow {
		r.since, r.asked = now, 0
	}
	r.asked++
	r.often = r.asked >= simpleBusy
	return r.often
}

// drawn are the operations whose requests come here.
var drawn = [...]subjects.Op{subjects.OpAcquire, subjects.OpRelease, subjects.OpRenew, subjects.OpCheck}

// asked counts a request that the queue group brought here, and has such requests come to this node if there are many of them. It waits for
// nothing: the server may be busy with its accounts.
func (z *zone) asked(addr subjects.Address, msg *nats.Msg) {
	if addr.Path != subjects.Simple || msg.Sub == nil || msg.Sub.Queue == "" || !slices.Contains(drawn[:], addr.Op) {
		return
	}
	if z.simples.failed.Load() {
		z.simples.failed.Store(false)
		z.simples.asked, z.simples.often = 0, false
	}
	if z.simples.often {
		return
	}
	if z.simples.counted(time.Now()) {
		z.turnMu.Lock()
		z.often = true
		z.turnMu.Unlock()
		z.mapping.Go(func() {
			if err := z.mapHere(); err != nil {
				z.d.log.Warn("a zone's requests do not come to the node of their client's server; it is tried again", "zone", z.name, "error", err)
				z.simples.failed.Store(true)
			}
		})
	}
}

// comeHere has the requests of this server's clients come to this node, which listens, as soon as they come often. It ends with retire: the
// others of the queue group take them then.
func (z *zone) comeHere() error {
	z.turnMu.Lock()
	z.listens = true
	z.turnMu.Unlock()
	return z.mapHere()
}

// stayAway ends that for good: a zone of the same name may come after this one.
func (z *zone) stayAway() {
	z.turnMu.Lock()
	z.listens = false
	z.turnMu.Unlock()
	z.mapAgain()
}

// mapAgain does it after what it depends on has changed.
func (z *zone) mapAgain() {
	if err := z.mapHere(); err != nil {
		z.d.log.Debug("a zone's requests", "zone", z.name, "error", err)
	}
}

// mapHere has the server do what is wanted now. The lock is held while that waits for a change of the server's accounts, and is no other's:
// a shard that stood behind it would stand for all zones.
func (z *zone) mapHere() error {
	z.hereMu.Lock()
	defer z.hereMu.Unlock()
	z.turnMu.Lock()
	wanted := z.listens && z.often && !z.away && !z.quiet && !z.apart && !z.d.still.Load() && z.d.settings.Clustered()
	z.turnMu.Unlock()
	if wanted == z.mapped {
		return nil
	}
	to := make(map[string]string)
	if wanted {
		for _, op := range drawn {
			to[subjects.SimplePattern(op)] = z.here + op.String() + ".{{wildcard(1)}}"
		}
	}
	if err := z.d.nats.Here(z.name, to); err != nil && (wanted || !errors.Is(err, natsd.ErrNoZone)) {
		return err
	}
	z.mapped = wanted
	return nil
}

// lost is told that the zone's connection is: as long as it is away, this node hears nothing, and the others of the queue group do.
func (z *zone) lost(_ *nats.Conn, err error) {
	if err != nil && !z.stopping.Load() {
		z.d.log.Warn("the zone's connection is lost", "zone", z.name, "error", err)
	}
	z.reach(false)
}

// back is told that it is there again.
func (z *zone) back(conn *nats.Conn) {
	// The server knows then what is listened to. If it takes longer, it will.
	if err := conn.FlushTimeout(natsTimeout); err != nil && !errors.Is(err, nats.ErrTimeout) {
		return // it is lost again
	}
	z.reach(true)
}

func (z *zone) reach(there bool) {
	z.turnMu.Lock()
	z.away = !there
	z.turnMu.Unlock()
	z.mapAgain()
}

// simple makes a message that came here one of the simple path. False: it is none, and was dealt with.
func (z *zone) simple(msg *nats.Msg, rest string) bool {
	op, last, _ := strings.Cut(rest, ".")
	if op != nobodyToken {
		msg.Subject = "locks." + rest
		return true
	}
	if msg.Header.Get("Status") != "503" {
		return false
	}
	if number, err := strconv.ParseUint(last, 10, 64); err == nil {
		z.unheard(number)
	} else if reply, err := base64.RawURLEncoding.DecodeString(last); err == nil && subjects.ValidReply(string(reply), "", true) {
		z.answer(subjects.OpNone, string(reply), noPrimary(), nil)
	}
	return false
}

// nobody is where NATS says that nobody listens.
func (z *zone) nobody(number uint64) string {
	return z.here + nobodyToken + "." + strconv.FormatUint(number, 10)
}

// nobodyFor is where NATS says so of a request that is not kept: its caller is told then, and asks again.
func (z *zone) nobodyFor(reply string) string {
	return z.here + nobodyToken + "." + base64.RawURLEncoding.EncodeToString([]byte(reply))
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

	// Of requests that are kept for that, until they are swept once, and until they are swept twice.
	maxOutward      = 4096
	maxOutwardBytes = 8 << 20
)

// outward are the requests of a zone that were passed on over NATS lately.
type outward struct {
	mu         sync.Mutex
	last       uint64
	young, old map[uint64]*task
	bytes      int // of the young
	sweeps     bool
}

// put takes a request over, and gives it a number. False: there are too many of them.
func (o *outward) put(t *task) (number uint64, kept bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last++
	if len(o.young) >= maxOutward || o.bytes+t.size > maxOutwardBytes {
		return o.last, false
	}
	if o.young == nil {
		o.young = make(map[uint64]*task)
	}
	o.young[o.last] = t
	o.bytes += t.size
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
	if t := o.young[number]; t != nil {
		delete(o.young, number)
		o.bytes -= t.size
		return t
	}
	t := o.old[number]
	delete(o.old, number)
	return t
}

// sweep forgets what was put before the last sweep.
func (o *outward) sweep() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, t := range o.old { // order: each by itself
		t.free()
	}
	o.old, o.young, o.bytes = o.young, nil, 0
	if o.sweeps = len(o.old) > 0; o.sweeps {
		time.AfterFunc(outwardTime, o.sweep)
	}
}
