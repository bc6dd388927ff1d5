package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/internal/boottime"
)

// stretch is a time in which somebody believed to hold a lock.
type stretch struct {
	name     string
	token    uint64
	from, to int64 // boot time, nanoseconds
}

// load is workers that lock and unlock while a test does its worst, and the record of what they believed.
type load struct {
	t        testing.TB
	tolerant bool // requests may fail: whom a worker is connected to may serve nobody
	cancel   context.CancelFunc
	done     sync.WaitGroup

	mu        sync.Mutex
	record    []stretch
	grants    []int64 // when one came
	slowest   time.Duration
	problems  []error
	startedAt int64
}

// teamSize is how many workers share a client, so that what they ask for at the same moment goes in one message.
const teamSize = 4

// startLoad starts teams of workers that take turns at a few locks each, every team with a client of its own on one of the urls; of
// several addresses in one it takes the first that it reaches.
func startLoad(t testing.TB, urls []string, teams int) *load {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	l := &load{t: t, cancel: cancel, startedAt: boottime.Now()}
	t.Cleanup(func() { // also of a test that has failed
		cancel()
		l.done.Wait()
	})
	for i := range teams {
		c, err := client.Connect(ctx, urls[i%len(urls)], client.WithNATSOptions(nats.DontRandomize()))
		if err != nil {
			t.Fatal(err)
		}
		l.done.Go(func() {
			defer disconnect(t, c)
			var team sync.WaitGroup
			for w := range teamSize {
				team.Go(func() {
					for n := w * 11; ctx.Err() == nil; n++ {
						l.once(ctx, c, fmt.Sprintf("load-%d", (i/2*7+n)%40)) // two teams meet at each lock now and then
					}
				})
			}
			team.Wait()
		})
	}
	return l
}

// once takes a lock, believes in it for a moment, and gives it back.
func (l *load) once(ctx context.Context, c *client.Client, name string) {
	asked := boottime.Now()
	ctxLock, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	claim, err := c.Mutex(name).Lock(ctxLock)
	if err != nil {
		l.problem(ctx, fmt.Errorf("lock %s: %w", name, err))
		return
	}
	got := boottime.Now()
	s := stretch{name: name, token: claim.Token(), from: got}
	if claim.State() == client.Held || claim.State() == client.Suspect {
		s.to = boottime.Now()
	}
	release, stop := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer stop()
	err = claim.Release(release)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.grants = append(l.grants, got)
	l.slowest = max(l.slowest, time.Duration(boottime.Now()-asked))
	if s.to > 0 {
		l.record = append(l.record, s)
	}
	if err != nil && !errors.Is(err, client.ErrLost) {
		l.problems = append(l.problems, fmt.Errorf("release %s: %w", name, err))
	}
}

func (l *load) problem(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return // the test is over
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.problems = append(l.problems, err)
}

// granted is how many grants there were so far.
func (l *load) granted() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.grants)
}

// progress waits until there were n more grants.
func (l *load) progress(n int) {
	l.t.Helper()
	want := l.granted() + n
	deadline := time.Now().Add(2 * patience)
	for l.granted() < want {
		if time.Now().After(deadline) {
			l.t.Fatalf("the workers are stuck: %d grants, %v", l.granted(), l.problems)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// stop ends the workers and judges what they believed: one holder at a time, tokens that rise, no request that failed.
// It gives the longest time in which nobody was granted anything.
func (l *load) stop() (gap time.Duration) {
	l.t.Helper()
	l.cancel()
	l.done.Wait()
	for _, err := range l.problems {
		if l.tolerant {
			l.t.Logf("a worker: %v", err)
			continue
		}
		l.t.Errorf("a worker: %v", err)
	}
	checkExclusive(l.t, l.record)
	slices.Sort(l.grants)
	for i := 1; i < len(l.grants); i++ {
		gap = max(gap, time.Duration(l.grants[i]-l.grants[i-1]))
	}
	return gap
}

// checkExclusive looks for two holders of one lock at one time, and for tokens that do not rise with time.
func checkExclusive(t testing.TB, record []stretch) {
	t.Helper()
	byName := make(map[string][]stretch)
	for _, s := range record {
		byName[s.name] = append(byName[s.name], s)
	}
	for name, list := range byName { // order: each is judged by itself
		slices.SortFunc(list, func(a, b stretch) int { return int(a.from - b.from) })
		for i := 1; i < len(list); i++ {
			a, b := list[i-1], list[i]
			if b.from < a.to {
				t.Errorf("%s: two holders: token %d from %d to %d, token %d from %d", name, a.token, a.from, a.to, b.token, b.from)
			}
			if b.token <= a.token {
				t.Errorf("%s: token %d after %d", name, b.token, a.token)
			}
		}
	}
}

// answer is what the broker said to a request of a plain client.
type answer struct {
	Granted bool   `json:"granted"`
	Token   uint64 `json:"token"`
	Key     string `json:"key"`
	Ticket  uint64 `json:"ticket"`
	Error   *struct {
		Code   int    `json:"code"`
		Reason string `json:"reason"`
		Text   string `json:"message"`
	} `json:"error"`
	at int64
}

// crowd is many waiters for one lock that any NATS client could be: they ask once and listen.
type crowd struct {
	t     testing.TB
	nc    *nats.Conn
	name  string
	inbox string

	mu      sync.Mutex
	answers map[int][]answer // by waiter
	order   []int            // in which they were granted first
	all     chan struct{}
	want    int
	over    bool // the test has ended, and may not be told that it failed

	releasing sync.WaitGroup
}

// queueUp has n waiters ask, in order, on a connection that nobody disturbs. Whoever is granted releases at once.
func queueUp(t testing.TB, nc *nats.Conn, name string, n int) *crowd {
	t.Helper()
	c := &crowd{t: t, nc: nc, name: name, answers: make(map[int][]answer), all: make(chan struct{}), want: n}
	c.inbox = nats.NewInbox()
	t.Cleanup(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.over = true
	})
	if _, err := nc.Subscribe(c.inbox+".*", func(m *nats.Msg) {
		var i int
		if _, err := fmt.Sscanf(m.Subject[len(c.inbox):], ".%d", &i); err == nil {
			c.hear(i, m.Data)
		}
	}); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		c.ask(i)
	}
	return c
}

// wrong fails the test, while it goes on. It is called without mu.
func (c *crowd) wrong(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.t.Errorf(format, args...)
	}
}

func (c *crowd) ask(i int) {
	body := fmt.Sprintf(`{"name":%q,"kind":"static","ttl":"10m","wait":"10m","request":"w%d"}`, c.name, i)
	if err := c.nc.PublishRequest("locks.acquire.anyone", fmt.Sprintf("%s.%d", c.inbox, i), []byte(body)); err != nil {
		c.wrong("waiter %d: %v", i, err)
	}
}

// askAgain is when a waiter repeats what was not answered: NATS delivers at most once (docs/protocol.md).
const askAgain = 3 * time.Second

// again has everybody ask again who has heard nothing; who stands in the queue keeps his place.
func (c *crowd) again() {
	for i := range c.want {
		c.mu.Lock()
		heard := len(c.answers[i]) > 0
		c.mu.Unlock()
		if !heard {
			c.ask(i)
		}
	}
}

func (c *crowd) hear(i int, body []byte) {
	var a answer
	if err := json.Unmarshal(body, &a); err != nil {
		c.wrong("waiter %d: %v: %s", i, err, body)
		return
	}
	if a.Error != nil && a.Error.Code == 503 { // "ask again": it does not stand in the queue
		c.t.Logf("waiter %d: %s", i, a.Error.Text)
		time.AfterFunc(10*time.Millisecond, func() { c.ask(i) })
		return
	}
	a.at = boottime.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	first := len(c.answers[i]) == 0
	c.answers[i] = append(c.answers[i], a)
	if !a.Granted || !first {
		return
	}
	c.order = append(c.order, i)
	c.releasing.Go(func() { c.release(a) })
	if len(c.order) == c.want {
		close(c.all)
	}
}

// release gives a lock back, and asks until somebody has answered.
func (c *crowd) release(a answer) {
	for range 200 {
		if msg, err := c.nc.Request("locks.release.anyone", releaseBody(c.name, a), 500*time.Millisecond); err == nil {
			var r answer
			if json.Unmarshal(msg.Data, &r) == nil && (r.Error == nil || r.Error.Code != 503 && r.Error.Code != 421) {
				return
			}
		}
		<-time.After(10 * time.Millisecond)
	}
	c.wrong("the release of token %d is never answered", a.Token)
}

func releaseBody(name string, a answer) []byte {
	return fmt.Appendf(nil, `{"name":%q,"key":%q,"request":"r%d"}`, name, a.Key, a.Token)
}

// finish waits until everybody was granted, and judges: each one grant, in the order of asking, tokens that rise. It gives
// the longest time between two grants.
func (c *crowd) finish() (gap time.Duration) {
	c.t.Helper()
	select {
	case <-c.all:
	case <-time.After(4 * patience):
		c.mu.Lock()
		defer c.mu.Unlock()
		c.t.Fatalf("%d of %d waiters were granted", len(c.order), c.want)
	}
	c.releasing.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	var last answer
	for _, i := range c.order {
		first := c.answers[i][0]
		if first.Ticket <= last.Ticket {
			c.t.Errorf("the queue's order was not kept: ticket %d is granted after %d", first.Ticket, last.Ticket)
		}
		for _, again := range c.answers[i][1:] {
			if again.Token != first.Token || again.Key != first.Key || again.Ticket != first.Ticket {
				c.t.Errorf("waiter %d got two answers: %+v and %+v", i, first, again)
			}
		}
		if first.Token <= last.Token {
			c.t.Errorf("token %d after %d", first.Token, last.Token)
		}
		if last.at > 0 {
			gap = max(gap, time.Duration(first.at-last.at))
		}
		last = first
	}
	return gap
}
