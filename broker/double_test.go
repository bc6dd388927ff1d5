package broker_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/subjects"
)

// load is some clients that take and release locks, and compare what they are told with what may be.
type load struct {
	t      testing.TB
	number atomic.Uint64
	rounds atomic.Int64
	quit   chan struct{}
	wg     sync.WaitGroup

	mu     sync.Mutex
	nodes  []*nats.Conn
	newest map[string]uint64 // token by name
	holder map[string]uint64 // who believes to hold a lock
}

func newLoad(t testing.TB) *load {
	l := &load{t: t, quit: make(chan struct{}), newest: make(map[string]uint64), holder: make(map[string]uint64)}
	t.Cleanup(l.stop)
	return l
}

// use has the clients ask these daemons from now on.
func (l *load) use(daemons []*broker.Daemon) {
	l.t.Helper()
	var nodes []*nats.Conn
	for _, d := range daemons {
		nodes = append(nodes, connect(l.t, url(d)))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.nodes = nodes
}

func (l *load) begin(clients, names int) {
	for client := range clients {
		l.wg.Go(func() {
			for i := client; ; i++ {
				select {
				case <-l.quit:
					return
				default:
				}
				name := fmt.Sprint("load/", i%names)
				key, ok := l.take(name, client)
				if ok {
					l.give(name, key)
				}
			}
		})
	}
}

func (l *load) stop() {
	select {
	case <-l.quit:
	default:
		close(l.quit)
	}
	l.wg.Wait()
}

// more waits until the clients have taken some more locks.
func (l *load) more(n int64) {
	l.t.Helper()
	until := l.rounds.Load() + n
	eventually(l.t, "clients get locks", func() bool { return l.rounds.Load() >= until })
}

// told is an answer, as far as the load looks at it.
type told struct {
	Granted  bool
	Released bool
	Token    uint64
	Key      string
	Error    struct {
		Code   int
		Reason string
	}
}

// insist asks one node after the other, with the same id, until there is an answer that does not say "again".
func (l *load) insist(op subjects.Op, client int, body string) told {
	for i := client; ; i++ {
		l.mu.Lock()
		nc := l.nodes[i%len(l.nodes)]
		l.mu.Unlock()
		msg, err := nc.Request(subjects.SimpleSubject(op, "anyone"), []byte(body), 2*time.Second)
		var a told
		if err == nil {
			if err := json.Unmarshal(msg.Data, &a); err != nil {
				l.t.Errorf("%s %s: %s", op, body, msg.Data)
			}
			if a.Error.Code != 503 {
				return a
			}
		} else if errors.Is(err, nats.ErrBadSubject) {
			l.t.Error(err)
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-l.quit:
			return a
		}
	}
}

func (l *load) take(name string, client int) (key string, ok bool) {
	id := l.number.Add(1)
	a := l.insist(subjects.OpAcquire, client, fmt.Sprintf(`{"name":%q,"wait":"1m","ttl":"5m","request":"a%d"}`, name, id))
	if !a.Granted {
		if a.Error.Code != 503 && a.Error.Code != 0 {
			l.t.Errorf("acquire %d of %s: %+v", id, name, a)
		}
		return "", false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if a.Token <= l.newest[name] {
		l.t.Errorf("%s: token %d after %d", name, a.Token, l.newest[name])
	}
	if other := l.holder[name]; other != 0 {
		l.t.Errorf("%s: granted to %d while %d holds it", name, id, other)
	}
	l.newest[name], l.holder[name] = a.Token, id
	return a.Key, true
}

func (l *load) give(name, key string) {
	l.mu.Lock()
	delete(l.holder, name)
	l.mu.Unlock()
	a := l.insist(subjects.OpRelease, int(l.number.Load()), fmt.Sprintf(`{"name":%q,"key":%q,"request":"r%d"}`, name, key, l.number.Add(1)))
	if a.Error.Code != 0 && a.Error.Code != 503 {
		l.t.Errorf("release of %s: %+v", name, a)
	}
	l.rounds.Add(1)
}

// double doubles the number of buckets, and waits until each has a primary that answers.
func double(t testing.TB, d *broker.Daemon, buckets int) {
	t.Helper()
	eventually(t, "the number of buckets is doubled", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		err := d.Change(ctx, shared.Command{Double: &shared.Double{Buckets: uint32(buckets)}})
		if err != nil && !errors.Is(err, shared.ErrStale) {
			t.Fatal(err)
		}
		return err == nil
	})
}

// static takes locks that last, and gives their keys.
func static(t testing.TB, nc *nats.Conn, n int) map[string]answer {
	t.Helper()
	held := make(map[string]answer)
	for i := range n {
		name := fmt.Sprint("static/", i)
		held[name] = acquire(t, nc, fmt.Sprintf(`{"name":%q,"ttl":"10m","request":"s%d"}`, name, i))
	}
	return held
}

// stillHeld checks that the locks are held with their tokens, by asking each node.
func stillHeld(t testing.TB, nc *nats.Conn, held map[string]answer) {
	t.Helper()
	for name, grant := range held {
		body := fmt.Sprintf(`{"name":%q,"key":%q,"trusted":true}`, name, grant.text("key"))
		var a answer
		eventually(t, "an answer for "+name, func() bool {
			msg, err := nc.Request("locks.renew.anyone", []byte(body), 2*time.Second)
			if err != nil {
				return false // a client asks again
			}
			a = read(t, msg)
			refusal, refused := a.fields["error"].(map[string]any)
			return !refused || refusal["code"] != float64(503)
		})
		if a.granted(); a.number("token") != grant.number("token") {
			t.Fatalf("%s: %s", name, a.msg.Data)
		}
	}
}

// The number of buckets is doubled twice, once with clients that take locks all the time, on three nodes; then one
// and all of them are restarted. No lock is lost, no token comes twice, nobody holds what another one holds.
func TestDoubling(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a while")
	}
	few := func(s *conf.Settings) { s.Buckets = 4 }
	c := brokertest.StartCluster(t, 3, t.TempDir(), few)
	nc := connect(t, url(c.Daemons[0]))
	held := static(t, nc, 100)
	l := newLoad(t)
	l.use(c.Daemons)
	l.begin(6, 20)
	l.more(50)
	double(t, c.Daemons[1], 4)
	l.more(50)
	stillHeld(t, nc, held)
	double(t, c.Daemons[2], 8)
	stillHeld(t, nc, held)
	l.more(50)
	c.Restart(0)
	l.use(c.Daemons)
	l.more(20)
	stillHeld(t, connect(t, url(c.Daemons[0])), held)
	l.stop()
	c.Restart(0, 1, 2)
	for _, d := range c.Daemons {
		stillHeld(t, connect(t, url(d)), held)
	}
}

// Buckets with nothing to do split too, and a node alone keeps what it had over a restart.
func TestDoublingOfOneNode(t *testing.T) {
	dir := t.TempDir()
	start := func() *broker.Daemon {
		return brokertest.Start(t, brokertest.WithData(dir), func(s *conf.Settings) { s.Buckets = 2 })
	}
	d := start()
	held := static(t, connect(t, url(d)), 20)
	for _, buckets := range []int{2, 4, 8} {
		double(t, d, buckets)
		brokertest.Stop(t, d)
		d = start()
		stillHeld(t, connect(t, url(d)), held)
	}
	info := ask(t, connect(t, url(d)), "locks.info", "")
	if info.number("buckets") != 16 {
		t.Fatalf("%s", info.msg.Data)
	}
}
