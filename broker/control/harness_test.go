package control

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/broker/natsd"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	patience    = 30 * time.Second // bounds every wait of these tests
	testLease   = 400 * time.Millisecond
	testBuckets = 8
)

func logger(node string) *slog.Logger {
	if os.Getenv("CONTROL_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug})).With("me", node)
}

// cluster is one NATS server to which the nodes of a test connect: the subjects are the same as over routes.
type cluster struct {
	t      *testing.T
	server *natsd.Server
	found  *shared.Found
	nodes  []*node
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	t.Parallel()
	auth, err := conf.NewAuth()
	if err != nil {
		t.Fatal(err)
	}
	zone := conf.Zone{Name: "main", Open: true}
	if err := auth.EnsureZone(zone.Name); err != nil {
		t.Fatal(err)
	}
	server, err := natsd.Start(t.Context(), natsd.Config{
		ServerName: "server", Listen: "127.0.0.1:0", Auth: auth, Zones: []conf.Zone{zone}, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	k := &cluster{t: t, server: server, found: &shared.Found{
		Cluster: "test", Buckets: testBuckets, Zones: []conf.Zone{zone}, Keys: auth.Export(),
		Settings: map[string]string{"node_lease": testLease.String()},
	}}
	t.Cleanup(func() {
		for _, n := range k.nodes {
			n.close()
		}
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := server.Stop(ctx); err != nil {
			t.Error(err)
		}
	})
	return k
}

// identifier is that of node i, 26 characters as they all are.
func identifier(i int) string { return strings.Repeat("a", 25) + string(rune(0x61+i)) }

// node is a control with copies that obey.
type node struct {
	t      *testing.T
	cfg    Config
	conn   *nats.Conn
	c      *Control
	copies *copies
}

func (k *cluster) config(i int) Config {
	return Config{
		Identifier: identifier(i), Name: fmt.Sprintf("node%d", i), NodeLease: testLease, Logger: logger(fmt.Sprint(i)),
		Plan:   plan.Config{Settle: int64(50 * time.Millisecond)},
		Routes: []string{fmt.Sprintf("127.0.0.1:%d", 5000+i)}, Clients: []string{fmt.Sprintf("127.0.0.1:%d", 4000+i)},
	}
}

// start starts a node; it is not waited for.
func (k *cluster) start(cfg Config) (*node, error) {
	k.t.Helper()
	conn, err := k.server.ConnectNodes()
	if err != nil {
		k.t.Fatal(err)
	}
	cfg.Conn = conn
	n := &node{t: k.t, cfg: cfg, conn: conn}
	if n.c, err = Start(k.t.Context(), cfg); err != nil {
		conn.Close()
		return nil, err
	}
	k.nodes = append(k.nodes, n)
	return n, nil
}

// join starts a node and waits until it has its copies.
func (k *cluster) join(cfg Config) *node {
	k.t.Helper()
	n, err := k.start(cfg)
	if err != nil {
		k.t.Fatal(err)
	}
	n.serve()
	return n
}

// three is a cluster of three nodes, the first of which has founded it.
func three(t *testing.T) (*cluster, []*node) {
	t.Helper()
	k := newCluster(t)
	first := k.config(1)
	first.Found = k.found
	a := k.join(first)
	nodes := []*node{a, k.join(k.config(2)), k.join(k.config(3))}
	k.complete(nodes...)
	k.vote(nodes...)
	return k, nodes
}

// vote waits until all these nodes vote, and nobody else: before, the loss of one may be the loss of the majority.
func (k *cluster) vote(nodes ...*node) {
	k.t.Helper()
	eventually(k.t, "all vote", func() bool {
		for _, n := range nodes {
			if s := n.c.arb.Status(); len(s.Voters) != len(nodes) || !slices.Contains(s.Voters, s.Raft) {
				return false
			}
		}
		return true
	})
}

// complete waits until every bucket has a primary among these nodes and a chain of all of them, on all of them.
func (k *cluster) complete(nodes ...*node) {
	k.t.Helper()
	var numbers []uint64
	for _, n := range nodes {
		numbers = append(numbers, n.number())
	}
	slices.Sort(numbers)
	for _, n := range nodes {
		n.copies.until("every bucket has a chain of all nodes", func(c *copies) bool {
			if len(c.views) != testBuckets {
				return false
			}
			for _, v := range c.views {
				var chain []uint64
				for _, m := range v.Chain {
					chain = append(chain, m.Node)
				}
				slices.Sort(chain)
				if !slices.Equal(chain, numbers) || v.InSync < min(2, len(nodes)) {
					return false
				}
			}
			return true
		})
	}
}

func (n *node) number() uint64 { return n.c.identity().Number }

// serve waits until the node is registered, and gives it copies.
func (n *node) serve() {
	n.t.Helper()
	ctx, cancel := context.WithTimeout(n.t.Context(), patience)
	defer cancel()
	number, life, state, err := n.c.WaitRegistered(ctx)
	if err != nil {
		n.t.Fatal(err)
	}
	if me := state.Node(number); me == nil || me.ID != n.cfg.Identifier || me.Life != life {
		n.t.Fatalf("registered as %d in life %d, and the state has %+v", number, life, me)
	}
	n.copies = newCopies(n, chain.Member{Node: number, Inc: life << 32})
	n.c.Serve(n.copies)
}

// close ends the node without a word, as if it had been killed.
func (n *node) close() {
	n.c.Close()
	n.conn.Close()
}

// copies are the copies of one node: they do what they are told and keep in mind what they have heard. A primary wants
// every node in its chain that is registered and not away, the first two of them in sync.
type copies struct {
	n    *node
	self chain.Member

	mu      sync.Mutex
	changed chan struct{}
	views   map[uint32]chain.View
	state   *shared.State
	applied uint64
	lease   chain.Lease
	live    int
	grants  int
	away    map[uint64]bool
	sealed  map[uint32]uint64
	refused []chain.View
	idle    bool // asks for nothing
	broken  []string
}

func newCopies(n *node, self chain.Member) *copies {
	return &copies{
		n: n, self: self, changed: make(chan struct{}), views: map[uint32]chain.View{}, away: map[uint64]bool{},
		sealed: map[uint32]uint64{},
	}
}

func (c *copies) note(change func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change()
	close(c.changed)
	c.changed = make(chan struct{})
}

// until waits for a condition.
func (c *copies) until(what string, is func(*copies) bool) {
	c.n.t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		c.mu.Lock()
		ok, changed := is(c), c.changed
		broken := c.broken
		views := fmt.Sprint(c.views)
		c.mu.Unlock()
		if len(broken) > 0 {
			c.n.t.Fatalf("node %d: %v", c.self.Node, broken)
		}
		if ok {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			c.n.t.Fatalf("node %d waits in vain: %s; views %s, status %+v", c.self.Node, what, views, c.n.c.Status())
		}
	}
}

func (c *copies) Install(views []shared.BucketView) {
	c.note(func() {
		for _, v := range views {
			if old := c.views[v.Bucket]; v.View.Epoch <= old.Epoch {
				c.broken = append(c.broken, fmt.Sprintf("bucket %d: %v after %v", v.Bucket, v.View, old))
			}
			c.views[v.Bucket] = v.View
		}
	})
}

func (c *copies) Applied(change uint64, state *shared.State) {
	c.note(func() {
		if change <= c.applied {
			c.broken = append(c.broken, fmt.Sprintf("change %d after %d", change, c.applied))
		}
		for b, v := range state.Views {
			if c.views[uint32(b)].Epoch != v.Epoch {
				c.broken = append(c.broken, fmt.Sprintf("change %d without the view of bucket %d", change, b))
			}
		}
		c.applied, c.state = change, state
		c.wish()
	})
}

func (c *copies) Grant(lease chain.Lease, live int) {
	c.note(func() {
		if lease.Under > c.applied {
			c.broken = append(c.broken, fmt.Sprintf("a lease under change %d at change %d", lease.Under, c.applied))
		}
		c.lease, c.live = lease, live
		c.grants++
	})
}

func (c *copies) Seal(orders []plan.SealOrder) {
	c.note(func() {
		for _, o := range orders {
			c.sealed[o.Bucket] = max(c.sealed[o.Bucket], o.Epoch)
			c.n.c.Sealed(o.Bucket, chain.Report{Member: c.self, Epoch: c.sealed[o.Bucket], Last: chain.Point{Epoch: 1, Seq: 1}})
		}
	})
}

func (c *copies) HandOver(orders []plan.HandOverOrder) {
	c.note(func() {
		for _, o := range orders {
			v := c.views[o.Bucket]
			at := v.Place(o.To)
			if v.Epoch != o.Epoch || v.Primary() != c.self || at < 1 {
				continue
			}
			next := v.Clone()
			next.Epoch++
			next.Chain = slices.Concat([]chain.Member{o.To}, v.Chain[:at], v.Chain[at+1:])
			next.InSync = max(next.InSync, 2)
			c.sealed[o.Bucket] = v.Epoch
			c.n.c.Sealed(o.Bucket, chain.Report{Member: c.self, Epoch: v.Epoch, Last: chain.Point{Epoch: 1, Seq: 1}})
			c.n.c.Propose(o.Bucket, next)
		}
	})
}

func (c *copies) Away(node uint64, away bool) {
	c.note(func() {
		c.away[node] = away
		c.wish()
	})
}

func (c *copies) Refused(_ uint32, view chain.View) {
	c.note(func() { c.refused = append(c.refused, view) })
}

// wish asks for what the primaries here would like.
func (c *copies) wish() {
	if c.idle || c.state == nil {
		return
	}
	for b, v := range c.views {
		if v.Primary() != c.self || c.sealed[b] >= v.Epoch {
			continue
		}
		next := chain.View{Epoch: v.Epoch + 1, Chain: []chain.Member{c.self}}
		for _, m := range v.Chain[1:] {
			if c.state.Lives(m) && !c.away[m.Node] {
				next.Chain = append(next.Chain, m)
			}
		}
		for i := range c.state.Nodes {
			m := c.state.Nodes[i].Member()
			if m.Node != c.self.Node && next.Place(m) < 0 && !c.away[m.Node] {
				next.Chain = append(next.Chain, m)
			}
		}
		next.InSync = min(2, len(next.Chain))
		if !slices.Equal(next.Chain, v.Chain) || next.InSync != v.InSync {
			c.n.c.Propose(b, next)
		}
	}
}
