package machine

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// script is a machine whose broker is the test itself: it sees each message and answers by hand.
type script struct {
	t    *testing.T
	m    *Machine
	now  int64
	sent []sentMessage
	over []*Call

	lanes []string // what it wants done with lanes
}

type sentMessage struct {
	reply   string
	subject string
	lane    int
	req     subjects.Request
}

const scriptLease = 16 * time.Second // a half is 8 s, a doubt begins at 9 s, the trust ends at 12 s

func newScript(t *testing.T) *script {
	return &script{t: t, now: int64(time.Hour), m: New(Config{
		User: "u", Buckets: 4, Timeout: time.Second, Lease: scriptLease, FirstBeat: 100, MaxCalls: 50,
		Conn: Conn{Server: "s", CID: 1},
	})}
}

// do runs a step of the machine and notes what it wants.
func (s *script) do(step func(now int64)) {
	s.t.Helper()
	step(s.now)
	for _, a := range s.m.Take() {
		switch a.Kind {
		case Send:
			addr, err := subjects.ParseAddress(a.Subject)
			if err != nil {
				s.t.Fatal(err)
			}
			msg := sentMessage{reply: a.Reply, subject: a.Subject, lane: a.Lane}
			if r := msg.req.Decode(addr.Op, a.Body); r != nil {
				s.t.Fatalf("%s: %v", a.Body, r)
			}
			s.sent = append(s.sent, msg)
		case Finish:
			s.over = append(s.over, a.Call)
		case OpenLane:
			s.lanes = append(s.lanes, "open "+a.Node+" "+a.Reply)
		case CloseLane:
			s.lanes = append(s.lanes, "close")
		case Listen:
			s.lanes = append(s.lanes, "listen "+a.Reply)
		case Unlisten:
			s.lanes = append(s.lanes, "unlisten "+a.Reply)
		}
	}
}

// pass lets time pass, with all ticks that are due on the way.
func (s *script) pass(d time.Duration) {
	s.t.Helper()
	until := s.now + int64(d)
	for s.m.Next() <= until {
		s.now = max(s.now, s.m.Next())
		s.do(s.m.Tick)
	}
	s.now = until
}

// next takes the oldest message that was not looked at, which must be of an operation.
func (s *script) next(op subjects.Op) sentMessage {
	s.t.Helper()
	if len(s.sent) == 0 {
		s.t.Fatalf("nothing was sent, expected %s", op)
	}
	msg := s.sent[0]
	s.sent = s.sent[1:]
	if msg.req.Op != op {
		s.t.Fatalf("sent %s, expected %s", msg.req.Op, op)
	}
	return msg
}

func (s *script) quiet() {
	s.t.Helper()
	if len(s.sent) > 0 {
		s.t.Fatalf("sent %s, expected nothing", s.sent[0].req.Op)
	}
}

// answer answers a message.
func (s *script) answer(msg sentMessage, body subjects.Body) {
	s.t.Helper()
	data := body.AppendJSON(nil)
	s.do(func(now int64) { (&simClient{m: s.m}).receive(now, msg.reply, data) })
}

// begin opens the session and acquires locks, each answered at once.
func (s *script) begin(names ...string) []*Hold {
	s.t.Helper()
	var holds []*Hold
	for i, name := range names {
		h := s.acquire(name, nil)
		if i == 0 {
			s.opened(1)
		}
		s.grant(s.next(subjects.OpAcquire), uint64(10+i), nil)
		if h.State(s.now) != Held {
			s.t.Fatalf("%s is %v after the grant", name, h.State(s.now))
		}
		holds = append(holds, h)
	}
	return holds
}

func (s *script) acquire(name string, change func(*Call)) *Hold {
	s.t.Helper()
	c := &Call{Req: &subjects.Request{Op: subjects.OpAcquire, Name: name}, Hold: &Hold{}, Endless: true}
	if change != nil {
		change(c)
	}
	s.do(func(now int64) {
		if err := s.m.Submit(now, c); err != nil {
			s.t.Fatal(err)
		}
	})
	return c.Hold
}

func (s *script) opened(incarnation uint64) {
	s.t.Helper()
	s.answer(s.next(subjects.OpSessionOpen), &subjects.Opened{
		Session: "token", Secret: "secret", User: "u", TTL: scriptLease, Lease: scriptLease, Node: "n",
		Incarnation: incarnation, Disconnect: "event", Events: "locks.event.session.u.id",
	})
}

func (s *script) grant(msg sentMessage, token uint64, change func(*subjects.Grant)) {
	s.t.Helper()
	g := &subjects.Grant{
		Name: msg.req.Name, Key: token, Token: token, Take: 1, TTL: msg.req.TTL, Lease: scriptLease, Node: "n", Ticket: 1,
	}
	if msg.req.Kind == subjects.Static {
		g.Lease = g.TTL
	}
	if change != nil {
		change(g)
	}
	s.answer(msg, g)
}

// kept answers a keep-alive with the tokens that the node n counts, bucket by bucket.
func (s *script) kept(msg sentMessage, tokens ...uint64) {
	s.t.Helper()
	s.keptAt(msg, "n", 0, tokens...)
}

// keptAt is kept by a node, in an epoch. A token that the machine does not know is in the bucket of the one before.
func (s *script) keptAt(msg sentMessage, node string, epoch uint64, tokens ...uint64) {
	s.t.Helper()
	k := &subjects.Kept{Node: node, Beat: msg.req.Beat, Lease: scriptLease, Buckets: []subjects.KeptBucket{}}
	for bucket := range s.m.buckets {
		part, at := subjects.KeptBucket{Bucket: bucket, Epoch: epoch}, uint32(0)
		for _, token := range tokens {
			for _, h := range append(slices.Clone(s.m.holds), s.m.ghosts...) {
				if h.Grant.Token == token {
					at = h.home.bucket
				}
			}
			if at == bucket {
				part.Count, part.Hash = part.Count+1, part.Hash^subjects.TokenHash(token)
			}
		}
		if part.Count > 0 {
			k.Buckets = append(k.Buckets, part)
			k.Count, k.Hash = k.Count+part.Count, k.Hash^part.Hash
		}
	}
	s.answer(msg, k)
}

// total answers with the node's total alone, as a broker does that is not ours.
func (s *script) total(msg sentMessage, node string, tokens ...uint64) {
	s.t.Helper()
	k := &subjects.Kept{Node: node, Beat: msg.req.Beat, Count: len(tokens), Lease: scriptLease}
	for _, token := range tokens {
		k.Hash ^= subjects.TokenHash(token)
	}
	s.answer(msg, k)
}

func (s *script) left(h *Hold, want time.Duration) {
	s.t.Helper()
	if got := h.Left(s.now); got != want {
		s.t.Fatalf("%s is trusted for another %v, expected %v", h.Grant.Name, got, want)
	}
}

func (s *script) state(h *Hold, want State) {
	s.t.Helper()
	if got := h.State(s.now); got != want {
		s.t.Fatalf("%s is %v (%v), expected %v", h.Grant.Name, got, h.Why, want)
	}
}

func (s *script) finished(h *Hold) bool {
	return slices.ContainsFunc(s.over, func(c *Call) bool { return c.Hold == h })
}

func refusal(code int, reason, why string) *subjects.Refusal {
	return &subjects.Refusal{Code: code, Reason: reason, Why: why, Message: strings.ToLower(reason)}
}

// ownCall is a call of the machine's caller.
func ownCall(owner any, req *subjects.Request) *Call { return &Call{Req: req, Owner: owner} }
