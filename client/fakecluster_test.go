package client_test

import (
	"crypto/tls"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/subjects"
)

// fakeCluster is a cluster of real NATS servers, each with a small broker that speaks the protocol over real lock tables.
// Replication is perfect: there is one table for each bucket, whichever broker is its primary. What the brokers of the daemon
// do between themselves is not here; what a client sees of nodes that die and buckets that move is.
type fakeCluster struct {
	t     *testing.T
	nodes []*fakeNode
	quiet bool          // nobody tells of a node that dies
	delay time.Duration // from a node's death to the take-over of its buckets
	tls   *tls.Config   // of the servers

	kept atomic.Int64 // answers to keep-alives that tell of something

	mu       sync.Mutex
	tables   []*bucket.Table
	primary  []*fakeNode // by bucket; nil while there is none
	term     uint32
	ids      int
	keys     uint64
	sessions map[string]bucket.Session
	secrets  map[string]string

	stop    chan struct{}
	running sync.WaitGroup

	life sync.RWMutex // whoever is called by NATS has it
	over bool         // nobody is any more: a test that has ended may not be told that it failed
}

type fakeNode struct {
	f    *fakeCluster
	name string
	srv  *server.Server
	nc   *nats.Conn
	up   bool
	hot  map[int]*nats.Subscription
}

const (
	fakeBuckets = 8
	fakeLease   = 6 * time.Second // a machine may stand still for some of it
)

func startFakeCluster(t *testing.T, change ...func(*fakeCluster)) *fakeCluster {
	t.Helper()
	f := &fakeCluster{t: t, delay: 400 * time.Millisecond, sessions: map[string]bucket.Session{},
		secrets: map[string]string{}, stop: make(chan struct{})}
	for _, c := range change {
		c(f)
	}
	for i := range 3 {
		f.nodes = append(f.nodes, f.startNode(fmt.Sprintf("n%d", i)))
	}
	for _, n := range f.nodes {
		waitFor(t, "the servers to know each other", func() bool { return len(f.told(n)) == len(f.nodes) })
		n.serve()
	}
	for b := range uint32(fakeBuckets) {
		f.tables = append(f.tables, bucket.New(bucket.Config{Bucket: b, Buckets: fakeBuckets}))
		f.primary = append(f.primary, nil)
		f.promote(int(b), f.nodes[int(b)%len(f.nodes)])
	}
	f.running.Go(f.tick)
	t.Cleanup(f.close)
	return f
}

// told are the servers that a node tells its clients of.
func (f *fakeCluster) told(n *fakeNode) []string {
	opts := nats.GetDefaultOptions()
	opts.Url = n.srv.ClientURL()
	if f.tls != nil {
		opts.Secure, opts.TLSConfig = true, &tls.Config{InsecureSkipVerify: true} //nolint:gosec // it is not about that
	}
	nc, err := opts.Connect()
	must(f.t, err)
	defer nc.Close()
	return nc.Servers()
}

func (f *fakeCluster) startNode(name string) *fakeNode {
	f.t.Helper()
	opts := &server.Options{ServerName: name, Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true, TLSConfig: f.tls}
	opts.Cluster = server.ClusterOpts{Name: "fake", Host: "127.0.0.1", Port: -1}
	for _, n := range f.nodes {
		opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats", Host: n.srv.ClusterAddr().String()})
	}
	srv, err := server.NewServer(opts)
	must(f.t, err)
	srv.Start()
	if !srv.ReadyForConnections(patience) {
		f.t.Fatal("the NATS server does not start")
	}
	nc, err := nats.Connect("", nats.InProcessServer(srv), nats.NoReconnect())
	must(f.t, err)
	return &fakeNode{f: f, name: name, srv: srv, nc: nc, up: true, hot: map[int]*nats.Subscription{}}
}

func (f *fakeCluster) close() {
	close(f.stop)
	f.running.Wait()
	f.life.Lock()
	f.over = true
	f.life.Unlock()
	for _, n := range f.nodes {
		n.nc.Close()
		n.srv.Shutdown()
		n.srv.WaitForShutdown()
	}
}

// alive gives a handler that is called only while the test goes on: the end of a connection does not wait for those of its messages.
func (f *fakeCluster) alive(handle nats.MsgHandler) nats.MsgHandler {
	return func(msg *nats.Msg) {
		f.life.RLock()
		defer f.life.RUnlock()
		if !f.over {
			handle(msg)
		}
	}
}

// serve subscribes to all but the buckets.
func (n *fakeNode) serve() {
	for _, op := range []subjects.Op{subjects.OpSessionOpen, subjects.OpSessionClose, subjects.OpInfo, subjects.OpServers} {
		_, err := n.nc.QueueSubscribe(subjects.SimplePattern(op), "oclocks", n.f.alive(n.receive))
		must(n.f.t, err)
	}
	for _, pattern := range []string{subjects.SimplePattern(subjects.OpKeep), subjects.KeepNodePattern(n.name)} {
		_, err := n.nc.Subscribe(pattern, n.f.alive(n.receive))
		must(n.f.t, err)
	}
	must(n.f.t, n.nc.Flush())
}

// promote makes a node primary of a bucket. It is called without mu.
func (f *fakeCluster) promote(b int, n *fakeNode) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !n.up {
		return
	}
	f.term++
	var out bucket.Output
	must(f.t, f.tables[b].Promote(f.now(), bucket.Term{Epoch: uint64(f.term), Term: f.term}, 0, &out))
	f.primary[b] = n
	sub, err := n.nc.QueueSubscribe(subjects.HotPattern(uint32(b)), "oclocks", f.alive(n.receive))
	must(f.t, err)
	n.hot[b] = sub
	n.perform(out.Effects)
}

// handOver moves a bucket in an orderly way.
func (f *fakeCluster) handOver(b int, to *fakeNode) {
	f.mu.Lock()
	old := f.primary[b]
	f.primary[b] = nil
	f.mu.Unlock()
	must(f.t, old.hot[b].Unsubscribe())
	must(f.t, old.nc.Flush())
	f.promote(b, to)
}

// kill ends a node at once; its buckets are without a primary for a while.
func (f *fakeCluster) kill(n *fakeNode) {
	f.mu.Lock()
	n.up = false
	var orphans []int
	for b := range f.primary {
		if f.primary[b] == n {
			f.primary[b] = nil
			orphans = append(orphans, b)
		}
	}
	f.mu.Unlock()
	n.srv.Shutdown()
	n.nc.Close()
	i := slices.Index(f.nodes, n)
	survivors := []*fakeNode{f.nodes[(i+1)%3], f.nodes[(i+2)%3]}
	if !f.quiet {
		e := subjects.ServerEvent{Subject: subjects.ServerEventSubject("down", n.name), Type: "server.down", Node: n.name}
		must(f.t, survivors[0].nc.Publish(e.Subject, e.AppendJSON(nil)))
	}
	f.running.Go(func() {
		select {
		case <-time.After(f.delay):
		case <-f.stop:
			return
		}
		for _, b := range orphans {
			f.promote(b, survivors[b%2])
		}
	})
}

func (f *fakeCluster) now() bucket.Now {
	return bucket.Now{Boot: boottime.Now(), Wall: time.Now().UnixMilli()}
}

// tick lets the tables do what is due.
func (f *fakeCluster) tick() {
	for {
		select {
		case <-f.stop:
			return
		case <-time.After(5 * time.Millisecond):
		}
		f.mu.Lock()
		for b, t := range f.tables {
			for n := f.primary[b]; n != nil && t.Next() <= boottime.Now(); {
				var out bucket.Output
				t.Step(f.now(), &bucket.Input{Kind: bucket.Tick}, &out)
				n.perform(out.Effects)
			}
		}
		f.mu.Unlock()
	}
}

// perform publishes what a table wants to be seen.
func (n *fakeNode) perform(effects []bucket.Effect) {
	for _, e := range effects {
		switch e.Kind {
		case bucket.Reply:
			if g, ok := e.Body.(*subjects.Grant); ok {
				told := *g
				told.Node = n.name
				e.Body = &told
			}
			n.reply(e.To, e.Body)
		case bucket.NotifyOwner:
			event := *e.Body.(*subjects.SessionEvent)
			event.Subject = subjects.SessionEventSubject(e.User, e.SessionID)
			n.publish(event.Subject, nil, &event)
		}
	}
}

func (n *fakeNode) reply(to string, body subjects.Body) {
	var header nats.Header
	if r, ok := body.(*subjects.Refusal); ok {
		header = nats.Header{subjects.HeaderErrorCode: {fmt.Sprint(r.Code)}, subjects.HeaderError: {r.Message}}
	}
	n.publish(to, header, body)
}

func (n *fakeNode) publish(to string, header nats.Header, body subjects.Body) {
	err := n.nc.PublishMsg(&nats.Msg{Subject: to, Header: header, Data: body.AppendJSON(nil)})
	if err != nil && n.up {
		n.f.t.Errorf("publish on %s: %v", to, err)
	}
}

// receive is a broker's edge.
func (n *fakeNode) receive(msg *nats.Msg) {
	f := n.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if !n.up {
		return
	}
	addr, err := subjects.ParseAddress(msg.Subject)
	must(f.t, err)
	var req subjects.Request
	if r := req.Decode(addr.Op, msg.Data); r != nil {
		n.reply(msg.Reply, r)
		return
	}
	in := bucket.Input{Zone: "z", User: addr.User, Reply: msg.Reply, Req: &req}
	if req.Session != "" {
		var known bool
		if in.Session, known = f.sessions[req.Session]; !known {
			n.reply(msg.Reply, &subjects.Refusal{Code: 410, Reason: subjects.ReasonSession})
			return
		}
	}
	switch addr.Op {
	case subjects.OpInfo:
		n.reply(msg.Reply, &subjects.Info{Protocol: 1, Buckets: fakeBuckets, Node: n.name})
	case subjects.OpServers:
		n.reply(msg.Reply, f.servers())
	case subjects.OpSessionOpen:
		n.reply(msg.Reply, f.openSession(addr.User, &req, n))
	case subjects.OpKeep:
		n.keep(msg, in.Session, req.Beat)
	case subjects.OpSessionClose:
		n.closeSession(&in)
	default:
		b := int(subjects.BucketOf(req.Name, fakeBuckets))
		if f.primary[b] != n {
			n.reply(msg.Reply, &subjects.Refusal{Code: 421, Reason: subjects.ReasonMoved, Map: &subjects.Map{Change: 1}})
			return
		}
		n.step(b, &in)
	}
}

func (n *fakeNode) step(b int, in *bucket.Input) {
	n.f.keys++
	in.Key = n.f.keys
	var out bucket.Output
	n.f.tables[b].Step(n.f.now(), in, &out)
	must(n.f.t, n.f.tables[b].Err())
	n.perform(out.Effects)
}

func (f *fakeCluster) servers() *subjects.Servers {
	list := &subjects.Servers{}
	for _, n := range f.nodes {
		list.Servers = append(list.Servers, subjects.Server{Node: n.name, Name: n.name, URLs: []string{n.srv.ClientURL()}, Status: "up"})
	}
	return list
}

func (f *fakeCluster) openSession(user string, req *subjects.Request, n *fakeNode) *subjects.Opened {
	f.ids++
	id, ok := f.secrets[req.Secret]
	if !ok {
		id = fmt.Sprintf("session-%03d", f.ids)
	}
	lease := fakeLease
	if req.Has&subjects.HasTTL != 0 {
		lease = req.TTL
	}
	s := bucket.Session{ID: id, Incarnation: uint64(f.ids), Lease: lease, Conn: bucket.Conn{Server: req.Server, CID: req.CID}}
	token, secret := fmt.Sprintf("%s-%d", id, f.ids), fmt.Sprintf("secret-%d", f.ids)
	f.sessions[token], f.secrets[secret] = s, id
	return &subjects.Opened{Session: token, Secret: secret, User: user, TTL: lease, Lease: lease, Node: n.name,
		Incarnation: s.Incarnation, Disconnect: "event", Events: subjects.SessionEventSubject(user, id)}
}

func (n *fakeNode) keep(msg *nats.Msg, s bucket.Session, beat uint64) {
	k := &subjects.Kept{Node: n.name, Beat: beat, Lease: s.Lease, Buckets: []subjects.KeptBucket{}}
	asked := strings.Count(msg.Subject, ".") == 3
	for b, t := range n.f.tables {
		if n.f.primary[b] != n {
			continue
		}
		count, hash, known, refusal := t.Keep(n.f.now(), "z", s, beat)
		if refusal != nil {
			n.reply(msg.Reply, refusal)
			return
		}
		asked = asked || known
		if count > 0 {
			k.Count, k.Hash = k.Count+count, k.Hash^hash
			k.Buckets = append(k.Buckets, subjects.KeptBucket{Bucket: uint32(b), Epoch: t.Term().Epoch, Count: count, Hash: hash})
		}
	}
	if k.Count > 0 {
		n.f.kept.Add(1)
	}
	if asked {
		n.reply(msg.Reply, k)
	}
}

func (n *fakeNode) closeSession(in *bucket.Input) {
	reply := in.Reply
	in.Reply = ""
	for b, at := range n.f.primary {
		if at == nil {
			n.reply(reply, &subjects.Refusal{Code: 503, Reason: subjects.ReasonUnavailable})
			return
		}
		part := *in
		n.step(b, &part)
	}
	n.reply(reply, &subjects.SessionClosed{})
}

// at is the node that is primary of a name's bucket.
func (f *fakeCluster) at(name string) *fakeNode {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.primary[subjects.BucketOf(name, fakeBuckets)]
}

// nameAt gives a lock's name whose bucket is with a node.
func (f *fakeCluster) nameAt(n *fakeNode, prefix string) string {
	for i := 0; ; i++ {
		if name := fmt.Sprintf("%s-%d", prefix, i); f.at(name) == n {
			return name
		}
	}
}

// connect connects a client to one node; it learns of the others.
func (f *fakeCluster) connect(n *fakeNode, opts ...client.Option) *client.Client {
	f.t.Helper()
	return connectURL(f.t, n.srv.ClientURL(), opts...)
}
