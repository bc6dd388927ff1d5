package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/subjects"
)

// past is a primary that was left behind: a static lock that it had granted is released, and the name and another one of
// its bucket have been granted anew by its successor.
type past struct {
	*cluster
	victim, heir int // nodes
	bucket       uint32
	epoch        uint64 // of the victim
	name, other  string
	old          answer // to the holder of name, by the victim
	name2, free2 answer // to the holders of name and other, by the successor
}

// askAt is one request of a plain client. It gives no answer, false, if none came.
func askAt(nc *nats.Conn, subject string, wait time.Duration, body []byte) (a answer, ok bool) {
	msg, err := nc.Request(subject, body, wait)
	return a, err == nil && json.Unmarshal(msg.Data, &a) == nil
}

// leaveBehind stops the i-th node, which is primary, and has another one take over. before is called when the node is about
// to be stopped.
func leaveBehind(t *testing.T, c *cluster, i int, before func(p *past)) *past {
	t.Helper()
	home := (i + 1) % 3
	nc := c.plain(home)
	p := &past{cluster: c, victim: i, name: c.named(i, "past")}
	p.other = c.beside(home, p.name, "beside")
	p.bucket = c.bucketOf(home, p.name)
	p.old = holdStatic(t, nc, p.name)
	p.epoch = c.inner(c.inside(home), i).copies[p.bucket].Epoch
	before(p)
	c.nodes[i].signal(syscall.SIGSTOP)
	asleep := time.Now()
	p.heir = c.successor(nc, p.name, i)
	t.Logf("node %d took over after %s", p.heir+1, time.Since(asleep))
	heir := c.plain(p.heir)
	release(t, heir, p.name, p.old)
	t.Logf("and had answered after %s", time.Since(asleep))
	p.name2, p.free2 = takeStatic(t, heir, p.name, "second"), takeStatic(t, heir, p.other, "second")
	if p.name2.Token <= p.old.Token {
		t.Errorf("token %d after %d", p.name2.Token, p.old.Token)
	}
	return p
}

// successor waits until another node than the i-th one is primary of a name.
func (c *cluster) successor(nc *nats.Conn, name string, i int) int {
	c.t.Helper()
	for deadline := time.Now().Add(3 * patience); ; {
		info, err := c.tryInfo(nc)
		if err == nil {
			id := info.Map.Primary[subjects.BucketOf(name, info.Buckets)]
			at := slices.IndexFunc(c.nodes, func(n *node) bool { return n.ID == id })
			if at >= 0 && at != i {
				return at
			}
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("nobody takes over from node %d: %v", i+1, err)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// takeStatic takes a static lock for a plain client with a request of that name.
func takeStatic(t testing.TB, nc *nats.Conn, name, request string) answer {
	t.Helper()
	a := askUntil(t, nc, "acquire", name, fmt.Appendf(nil, `{"name":%q,"kind":"static","ttl":"10m","request":"%s-%s"}`, name, request, name),
		func(a *answer) bool { return a.Granted })
	return a
}

func release(t testing.TB, nc *nats.Conn, name string, a answer) {
	t.Helper()
	r := askUntil(t, nc, "release", name, releaseBody(name, a), answered)
	if r.Error != nil {
		t.Fatalf("release of %s: %+v", name, r.Error)
	}
}

// answered says whether it is more than that it should be asked again.
func answered(a *answer) bool { return a.Error == nil || a.Error.Code != 503 && a.Error.Code != 421 }

// buckets is how many there are by default.
const buckets = 32

// askUntil repeats a request until the answer is as it should be, by turns to the primary and to any node: one may stand
// still.
func askUntil(t testing.TB, nc *nats.Conn, op, name string, body []byte, ok func(*answer) bool) answer {
	t.Helper()
	ways := []string{
		fmt.Sprintf("locks.b.%d.%s.anyone", subjects.BucketOf(name, buckets), op),
		fmt.Sprintf("locks.%s.anyone", op),
	}
	var last answer
	deadline := time.Now().Add(2 * patience)
	for i := 0; time.Now().Before(deadline); i++ {
		a, came := askAt(nc, ways[i%2], askTime, body)
		if came && ok(&a) {
			return a
		}
		if came {
			last = a
		}
		<-time.After(5 * time.Millisecond)
	}
	t.Fatalf("%s of %s: not after %s; the last answer is %+v %+v", op, name, 2*patience, last, last.Error)
	return last
}

// answersNothingOld asks, from a node, about everything that has changed since, and judges the answers: either the truth of
// now, which only the successor knows, or nothing. Half of the requests go to who believes to be primary, half to any node
// that passes them on.
func (p *past) answersNothingOld(nc *nats.Conn, round int) {
	p.t.Helper()
	const wait = 100 * time.Millisecond
	try := func(op, body string, args ...any) (answer, []byte) {
		subject := "locks." + op + ".anyone"
		if round%2 == 0 {
			subject = fmt.Sprintf("locks.b.%d.%s.anyone", p.bucket, op)
		}
		msg, err := nc.Request(subject, fmt.Appendf(nil, body, args...), wait)
		var a answer
		if err != nil || json.Unmarshal(msg.Data, &a) != nil {
			return answer{}, nil
		}
		return a, msg.Data
	}
	if a, text := try("acquire", `{"name":%q,"kind":"static","ttl":"10m","request":"third-%d"}`, p.other, round); a.Granted {
		p.t.Errorf("%s is granted again while token %d holds it: %s", p.other, p.free2.Token, text)
	}
	if a, text := try("renew", `{"name":%q,"key":%q,"request":"renew-%d"}`, p.name, p.old.Key, round); text != nil && a.Error == nil {
		p.t.Errorf("a lock that was released is renewed: %s", text)
	}
	a, text := try("query", `{"name":%q}`, p.name)
	var rec struct {
		Holders []struct {
			Token uint64 `json:"token"`
		} `json:"holders"`
	}
	if text != nil && a.Error == nil && (json.Unmarshal(text, &rec) != nil || len(rec.Holders) != 1 || rec.Holders[0].Token != p.name2.Token) {
		p.t.Errorf("a wrong answer of who holds %s, which is token %d: %s", p.name, p.name2.Token, text)
	}
}

// stays judges that everybody has what the successor granted.
func (p *past) stays() {
	p.t.Helper()
	p.whole(p.inside(p.heir), 0, 1, 2)
	for i := range p.nodes {
		nc := p.plain(i)
		for _, held := range []struct {
			name string
			by   answer
		}{{p.name, p.name2}, {p.other, p.free2}} {
			if a := takeStatic(p.t, nc, held.name, "second"); a.Token != held.by.Token || a.Key != held.by.Key {
				p.t.Errorf("by node %d %s has another holder: token %d, not %d", i+1, held.name, a.Token, held.by.Token)
			}
		}
	}
	release(p.t, p.plain(p.victim), p.name, p.name2)
	release(p.t, p.plain(p.victim), p.other, p.free2)
}

// A primary that was stopped misses a view change and gets a fresh lease before it has applied that change: it answers
// nothing under the old view.
func TestFreshLeaseBeforeItsChange(t *testing.T) {
	c := newCluster(t, 3).withFaults()
	for i := range c.nodes {
		c.start(i)
	}
	c.balanced()
	p := leaveBehind(t, c, 1, func(*past) { c.arm(1, "control.hold=1") })
	inside := c.inside(p.heir)
	c.nodes[1].signal(syscall.SIGCONT)
	behind := func(in *inner) bool {
		return in.Lease > 0 && len(in.copies) > 0 && in.copies[p.bucket].Epoch == p.epoch
	}
	c.until(inside, "the old primary has a lease and its old view", []int{1}, func(all map[int]*inner) bool { return behind(all[1]) })
	if plan := c.inner(inside, 1).copies[p.bucket]; plan.Role != chain.Primary.String() {
		t.Fatalf("the old primary has noticed that it is none: %+v", plan)
	}
	old := c.plain(1)
	for round := range 20 {
		p.answersNothingOld(old, round)
	}
	c.until(inside, "that was what was to be tried", []int{1}, func(all map[int]*inner) bool {
		return behind(all[1]) && !all[1].copies[p.bucket].Acting
	})
	c.arm(1)
	p.stays()
}

// An old primary that wakes up and sends a cascade of the old epoch: only the sender stops, the new primary and its data
// stay.
func TestOldPrimaryCascades(t *testing.T) {
	c := newCluster(t, 3).withFaults().overNATS()
	for i := range c.nodes {
		c.start(i)
	}
	c.balanced()
	asked := make(chan *nats.Msg, 16)
	p := leaveBehind(t, c, 1, func(p *past) {
		// The victim grants a lock, and is stopped before anybody else hears of it.
		c.arm(1, "chain.late=1")
		nc := c.plain(1)
		inbox := nc.NewInbox()
		if _, err := nc.ChanSubscribe(inbox, asked); err != nil {
			t.Fatal(err)
		}
		body := fmt.Appendf(nil, `{"name":%q,"kind":"static","ttl":"10m","wait":"1m","request":"first"}`, p.other)
		if err := nc.PublishRequest("locks.acquire.anyone", inbox, body); err != nil {
			t.Fatal(err)
		}
		c.nodes[1].line("fault", "chain.late")
	})
	inside := c.inside(p.heir)
	wire := c.tap(inside, p.bucket)
	number := c.inner(inside, p.heir).Number
	c.nodes[1].signal(syscall.SIGCONT)
	// Its shard stands still, so it may be that it asks for no lease.
	c.until(inside, "the old primary is back", []int{1}, func(map[int]*inner) bool { return true })
	c.arm(1) // now its change goes out
	cascade := wire.wait(t, "a cascade of the old epoch", func(m *overheard) bool {
		return m.Kind == chain.Append && m.Epoch == p.epoch && len(m.Changes) > 0
	})
	wire.wait(t, "that it is stale", func(m *overheard) bool { return m.Kind == chain.Stale && m.To == cascade.From && m.Epoch > p.epoch })
	old := c.plain(1)
	for round := range 10 {
		p.answersNothingOld(old, round)
	}
	// The successor goes on as if nothing had been.
	c.until(c.inside(p.heir), "the new primary was not stopped", []int{p.heir}, func(all map[int]*inner) bool {
		copies := all[p.heir].copies
		return len(copies) > 0 && (copies[p.bucket].Chain[0] != number || copies[p.bucket].Acting)
	})
	p.stays()
	// Who had asked the old primary waits, in the new one's queue or in nobody's; it was never granted twice.
	for len(asked) > 0 {
		var a answer
		if msg := <-asked; json.Unmarshal(msg.Data, &a) == nil && a.Granted && a.Token <= p.free2.Token {
			t.Errorf("the old primary's grant took effect: %s", msg.Data)
		}
	}
}

// A bundle that is on its way to a primary while that stands still, and that it takes when it wakes up with other primaries of its buckets
// in its place: nothing of it takes effect there, and nobody is told that it has.
func TestABundleForAStoppedPrimary(t *testing.T) {
	c := startCluster(t, 3)
	c.balanced()
	var nc *nats.Conn
	p := leaveBehind(t, c, 1, func(*past) { nc = c.plain(1) })
	inbox := nc.NewInbox() + "."
	answers, err := nc.SubscribeSync(inbox + "*")
	if err != nil {
		t.Fatal(err)
	}
	var bundle subjects.Bundle
	for token, request := range map[string]string{
		"c0": `acquire {"name":%q,"kind":"static","ttl":"10m","request":"fourth"}`,
		"c1": `renew {"name":%q,"key":"` + p.old.Key + `"}`,
		"c2": `release {"name":%q,"key":"` + p.old.Key + `"}`,
		"c3": `acquire {"name":%q,"kind":"static","ttl":"10m","wait":"1m","request":"fifth"}`,
	} {
		op, body, _ := strings.Cut(request, " ")
		name := p.name
		if op == "acquire" {
			name = p.other
		}
		if !bundle.Add(subjects.OwnBundleLimits(), token, op, fmt.Appendf(nil, body, name)) {
			t.Fatal("no room")
		}
	}
	if err := nc.PublishRequest(subjects.BundleSubject(c.nodes[1].ID, subjects.Anyone), bundle.Reply(inbox), bundle.Body()); err != nil {
		t.Fatal(err)
	}
	c.nodes[1].signal(syscall.SIGCONT)
	told := 0
	for wait := 2 * patience; ; wait = time.Second {
		msg, err := answers.NextMsg(wait)
		if err != nil {
			break
		}
		told++
		if text := string(msg.Data); !strings.Contains(text, `"error"`) {
			t.Errorf("carried out: %s %s", msg.Subject, text)
		}
	}
	if told == 0 {
		t.Error("nothing of the bundle is answered")
	}
	p.stays()
}
