package inside

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

func within(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// startServer starts a NATS server in which everybody may do everything.
func startServer(t testing.TB) *server.Server {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server does not start")
	}
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	return s
}

func unsigned([]byte) ([]byte, error) { return []byte("x"), nil }

func open(t testing.TB, opts Options) *Conn {
	t.Helper()
	opts.Name, opts.Sign = "test", unsigned
	c, err := Open(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// got collects messages.
type got struct {
	ch chan Message
}

func newGot() *got { return &got{make(chan Message, 100_000)} }

func (g *got) take(m *Message) {
	g.ch <- Message{m.Subject, m.Reply, bytes.Clone(m.Header), bytes.Clone(m.Data)}
}

func (g *got) next(t testing.TB) Message {
	t.Helper()
	select {
	case m := <-g.ch:
		return m
	case <-time.After(patience):
		t.Fatal("no message comes")
		return Message{}
	}
}

func subscribe(t testing.TB, c *Conn, subject, queue string, handle func(m *Message)) *Subscription {
	t.Helper()
	s, err := c.Subscribe(subject, queue, handle)
	if err == nil {
		err = c.Sync(within(t))
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Messages of all sizes arrive as they were sent, in their order, whichever way they are flushed.
func TestMessagesArrive(t *testing.T) {
	s := startServer(t)
	a, b := open(t, Options{Dial: s.InProcessConn}), open(t, Options{Dial: s.InProcessConn})
	g := newGot()
	subscribe(t, b, "to.*", "", g.take)
	random := rand.New(rand.NewPCG(1, 2))
	var sent []Message
	for i := range 600 {
		size := random.IntN(300)
		switch random.IntN(40) {
		case 0:
			size = random.IntN(400_000)
		case 1:
			size = random.IntN(70_000)
		case 2:
			size = 0
		}
		m := Message{Subject: fmt.Sprint("to.", random.IntN(5)), Data: make([]byte, size)}
		for k := 0; k < size; {
			k += copy(m.Data[k:], "\r\nMSG to.1 1 5\r\n"[random.IntN(14):])
		}
		if random.IntN(2) == 0 {
			m.Reply = fmt.Sprint("_INBOX.", i)
		}
		if random.IntN(3) == 0 {
			m.Header = Header("A", fmt.Sprint(i), "B", strings.Repeat("b", random.IntN(100)))
		}
		if err := a.Put(m.Subject, m.Reply, m.Header, m.Data); err != nil {
			t.Fatal(err)
		}
		switch sent = append(sent, m); random.IntN(4) {
		case 0:
			a.Flush()
		case 1:
			a.Kick()
		}
	}
	a.Flush()
	for i, want := range sent {
		m := g.next(t)
		if m.Subject != want.Subject || m.Reply != want.Reply || !bytes.Equal(m.Header, want.Header) || !bytes.Equal(m.Data, want.Data) {
			t.Fatalf("message %d is %s %s with %d and %d bytes, not %s %s with %d and %d", i, m.Subject, m.Reply, len(m.Header), len(m.Data),
				want.Subject, want.Reply, len(want.Header), len(want.Data))
		}
	}
}

// Many publish on one connection at once: nothing is lost, and each one's messages stay in order.
func TestManyPublish(t *testing.T) {
	s := startServer(t)
	a, b := open(t, Options{Dial: s.InProcessConn}), open(t, Options{Dial: s.InProcessConn})
	g := newGot()
	subscribe(t, b, "from.*", "", g.take)
	const who, each = 8, 500
	var group sync.WaitGroup
	for w := range who {
		group.Go(func() {
			for i := range each {
				if err := a.Put(fmt.Sprint("from.", w), "", nil, fmt.Append(nil, i)); err != nil {
					t.Error(err)
				}
				if w%2 == 0 {
					a.Flush()
				} else {
					a.Kick()
				}
			}
		})
	}
	group.Wait()
	next := map[string]int{}
	for range who * each {
		m := g.next(t)
		if string(m.Data) != fmt.Sprint(next[m.Subject]) {
			t.Fatalf("%s: %s comes, not %d", m.Subject, m.Data, next[m.Subject])
		}
		next[m.Subject]++
	}
}

// It speaks with nats.go: groups, headers with text that could end a line, and answers.
func TestWithNATSgo(t *testing.T) {
	s := startServer(t)
	c := open(t, Options{Dial: s.InProcessConn})
	nc, err := nats.Connect(s.ClientURL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	answer := func(m *Message) {
		if err := c.Put(m.Reply, "", Header("Why", "a\r\nb: c", "Got", string(m.Header)), m.Data); err != nil {
			t.Error(err)
		}
		c.Kick()
	}
	subscribe(t, c, "ask", "group", answer)
	subscribe(t, c, "ask", "group", answer) // one of them is asked
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.PublishMsg(&nats.Msg{Subject: "ask", Reply: inbox, Data: []byte("x"), Header: nats.Header{"K": {"v"}}}); err != nil {
		t.Fatal(err)
	}
	m, err := sub.NextMsg(patience)
	if err != nil {
		t.Fatal(err)
	}
	if m.Header.Get("Why") != "a  b: c" || !strings.Contains(m.Header.Get("Got"), "K: v") || string(m.Data) != "x" || len(m.Header) != 2 {
		t.Errorf("the answer is %v %q", m.Header, m.Data)
	}
	if err := errors.Join(c.Sync(within(t)), nc.Flush()); err != nil {
		t.Fatal(err)
	}
	if n, _, err := sub.Pending(); n != 0 || err != nil {
		t.Errorf("%d more answers (%v)", n, err)
	}
}

// What cannot be published is refused, and nothing of it is sent.
func TestRefused(t *testing.T) {
	s := startServer(t)
	c := open(t, Options{Dial: s.InProcessConn})
	g := newGot()
	subscribe(t, c, ">", "", g.take)
	for _, subject := range []string{"", "a b", "a\r\nPUB b 0\r\n", "a\tb", "a\x00", "a\x7f"} {
		if err := c.Put(subject, "", nil, nil); !errors.Is(err, ErrSubject) {
			t.Errorf("%q: %v", subject, err)
		}
		if _, err := c.Subscribe(subject, "", g.take); !errors.Is(err, ErrSubject) {
			t.Errorf("listen to %q: %v", subject, err)
		}
		if subject == "" {
			continue // no reply is wanted, or no group
		}
		if err := c.Put("a", subject, nil, nil); !errors.Is(err, ErrSubject) {
			t.Errorf("reply to %q: %v", subject, err)
		}
		if _, err := c.Subscribe("a", subject, g.take); !errors.Is(err, ErrSubject) {
			t.Errorf("listen in group %q: %v", subject, err)
		}
	}
	if err := c.Put("a", "", nil, make([]byte, server.MAX_PAYLOAD_SIZE+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("too large: %v", err)
	}
	if err := c.Put("a", "", nil, make([]byte, server.MAX_PAYLOAD_SIZE)); err != nil {
		t.Errorf("as large as can be: %v", err)
	}
	c.Flush()
	if m := g.next(t); len(m.Data) != server.MAX_PAYLOAD_SIZE {
		t.Errorf("%d bytes came", len(m.Data))
	}
	if err := c.Sync(within(t)); err != nil || len(g.ch) != 0 {
		t.Errorf("%d more messages (%v)", len(g.ch), err)
	}
	c.Close()
	_, subErr := c.Subscribe("a", "", g.take)
	for i, err := range []error{c.Put("a", "", nil, nil), c.Sync(within(t)), subErr} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%d, closed: %v", i, err)
		}
	}
	if c.Close(); !c.IsClosed() || c.IsConnected() {
		t.Error("it is not closed")
	}
}

// What the server sent before it knew of the end of a subscription is handled; later messages are not.
func TestUnsubscribe(t *testing.T) {
	s := startServer(t)
	a, b := open(t, Options{Dial: s.InProcessConn}), open(t, Options{Dial: s.InProcessConn})
	g, goOn := newGot(), make(chan struct{})
	sub := subscribe(t, b, "x", "", func(m *Message) { <-goOn; g.take(m) })
	for range 10 {
		if err := a.Put("x", "", nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Sync(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := sub.Unsubscribe(); err != nil {
		t.Fatal(err)
	}
	close(goOn)
	for range 10 {
		g.next(t)
	}
	if err := b.Sync(within(t)); err != nil {
		t.Fatal(err)
	}
	if err := a.Put("x", "", nil, nil); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(a.Sync(within(t)), b.Sync(within(t))); err != nil || len(g.ch) != 0 || len(b.subs) != 0 {
		t.Errorf("%d messages, %d subscriptions (%v)", len(g.ch), len(b.subs), err)
	}
}

// A connection that breaks comes back with its subscriptions, and nobody waits for what is lost.
func TestComesBack(t *testing.T) {
	s := startServer(t)
	var mu sync.Mutex
	var conns []net.Conn
	refuse := false
	lost := make(chan error, 10)
	c := open(t, Options{Lost: func(err error) { lost <- err }, Dial: func() (net.Conn, error) {
		mu.Lock()
		defer mu.Unlock()
		if refuse {
			return nil, errors.New("not now")
		}
		nc, err := s.InProcessConn()
		conns = append(conns, nc)
		return nc, err
	}})
	g := newGot()
	subscribe(t, c, "x", "", g.take)
	mu.Lock()
	refuse = true
	conns[0].Close()
	mu.Unlock()
	select {
	case <-lost:
	case <-time.After(patience):
		t.Fatal("nobody is told")
	}
	if err := c.Put("x", "", nil, nil); !errors.Is(err, ErrAway) {
		t.Errorf("publish while away: %v", err)
	}
	if err := c.Sync(within(t)); !errors.Is(err, ErrAway) || c.IsConnected() {
		t.Errorf("sync while away: %v", err)
	}
	late := newGot()
	if _, err := c.Subscribe("late", "", late.take); err != nil { // told when it is back
		t.Fatal(err)
	}
	mu.Lock()
	refuse = false
	mu.Unlock()
	deadline := time.After(patience)
	for c.Sync(within(t)) != nil {
		select {
		case <-deadline:
			t.Fatal("it does not come back")
		case <-time.After(time.Millisecond):
		}
	}
	if err := errors.Join(c.Put("x", "", nil, []byte("1")), c.Put("late", "", nil, []byte("2"))); err != nil {
		t.Fatal(err)
	}
	c.Flush()
	if m := g.next(t); string(m.Data) != "1" {
		t.Errorf("got %q", m.Data)
	}
	if m := late.next(t); string(m.Data) != "2" {
		t.Errorf("got %q", m.Data)
	}
}
