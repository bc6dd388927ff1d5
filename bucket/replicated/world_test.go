package replicated

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/subjects"
)

const (
	ms        = int64(time.Millisecond)
	nodeLease = 600 * ms
	testZone  = "z"
)

// world is a cluster of one bucket on three nodes: the real rooms, a network that loses and repeats, journals that survive
// their node, and a control plane that is only as clever as it has to be.
type world struct {
	t      fataler
	now    int64
	change uint64
	nodes  []*host
	view   chain.View
	net    []envelope
	key    uint64

	asked  map[string]*ask // by request id
	order  []string
	tokens map[string]uint64 // by lock: the last one that anybody was told
	used   map[uint64]bool
	lost   int  // marks
	spoils bool // the test has a table not take something
	alerts int
	owed   uint64 // epoch for which somebody was sealed
}

type fataler interface{ Fatalf(string, ...any) }

type host struct {
	id      uint64
	b       *Bucket // nil: it is down
	out     Output
	records []Record
	lease   int64
	reports []chain.Report
	turn    bool
}

type envelope struct {
	from uint64
	m    chain.Message
}

// ask is a request of a client, and what it was told.
type ask struct {
	req   subjects.Request
	user  string
	reply string
	told  string // the first reply
	again bool   // it was told to ask again
	grant *subjects.Grant
}

func newWorld(t fataler, nodes int) *world {
	w := &world{t: t, now: 1000 * ms, asked: make(map[string]*ask), tokens: make(map[string]uint64), used: make(map[uint64]bool)}
	for i := range nodes {
		h := &host{id: uint64(i + 1)}
		w.nodes = append(w.nodes, h)
		w.start(h)
	}
	w.commit(chain.View{Epoch: 1, Chain: []chain.Member{w.nodes[0].b.Chain().Self()}, InSync: 1})
	return w
}

func (w *world) config(h *host) Config {
	return Config{
		Table: bucket.Config{Bucket: 3, Buckets: 8},
		Chain: chain.Config{Bucket: 3, Self: chain.Member{Node: h.id, Inc: 1 << 32}, Recovery: 1000 * ms, Limits: chain.Limits{Pending: 256}},
	}
}

// start brings a node up from its journal.
func (w *world) start(h *host) {
	replay := NewReplay(w.config(h).Table)
	for _, r := range h.records {
		if err := replay.Add(r.Number, r.Whole, r.Payload); err != nil {
			w.t.Fatalf("node %d: record %d: %v", h.id, r.Number, err)
		}
	}
	start := replay.Start()
	if start.Spoiled != nil && !w.spoils {
		w.t.Fatalf("node %d: %v", h.id, start.Spoiled)
	}
	if len(h.records) == 0 {
		start = Start{}
	}
	w.begin(h, start)
}

func (w *world) begin(h *host, start Start) {
	var err error
	if h.b, err = New(w.config(h), start); err != nil {
		w.t.Fatalf("node %d: %v", h.id, err)
	}
	h.lease, h.turn, h.reports = 0, false, nil
	h.b.Tick(w.clock())
	h.b.Chain().Join()
	if w.view.Epoch > 0 {
		w.install(h)
	}
}

func (w *world) install(h *host) {
	if err := h.b.Chain().Install(w.view); err != nil {
		w.t.Fatalf("install: %v", err)
	}
	h.b.Chain().Applied(w.change)
}

// commit makes a view the present one, if its epoch is the next.
func (w *world) commit(v chain.View) bool {
	if v.Epoch != w.view.Epoch+1 {
		return false
	}
	w.view = v.Clone()
	w.change++
	for _, h := range w.nodes {
		h.reports = nil
		if h.b != nil {
			w.install(h)
		}
	}
	return true
}

func (w *world) clock() bucket.Now { return bucket.Now{Boot: w.now, Wall: w.now / ms} }

// pass lets time go by, and has the nodes that are up keep their leases.
func (w *world) pass(d int64, leases func(h *host) bool) {
	w.now += d
	for _, h := range w.nodes {
		if h.b != nil && leases(h) {
			h.lease = w.now + nodeLease
			h.b.Chain().Grant(chain.Lease{Until: w.now + nodeLease*3/4, Under: w.change})
		}
	}
}

// round has a node do what there is to do.
func (w *world) round(h *host) {
	if h.b == nil {
		return
	}
	h.b.Tick(w.clock())
	h.out.Reset()
	h.b.Round(w.clock(), &h.out)
	if err := h.b.Err(); err != nil {
		w.t.Fatalf("node %d: %v", h.id, err)
	}
	if h.b.spoiled && !w.spoils {
		w.t.Fatalf("node %d: %s", h.id, h.b.Chain().Status().Stopped)
	}
	h.write(h.out.Records)
	for _, m := range slices.Concat(h.out.Messages, h.out.Later) {
		text := m.Encode(nil)
		m, err := chain.Decode(text)
		if err != nil {
			w.t.Fatalf("decode: %v", err)
		}
		w.net = append(w.net, envelope{h.id, m})
	}
	for i := range h.out.Released {
		w.hear(&h.out.Released[i].Effect)
	}
	for _, m := range h.out.Marks {
		if m.Lost {
			w.lost++
		}
	}
	w.alerts += len(h.out.Alerts)
	for _, turn := range h.out.Turns {
		h.turn = turn.Primary
	}
	for _, r := range h.out.Reports {
		h.reports = append(h.reports, r.Report)
	}
	for _, p := range h.out.Proposals {
		if !w.commit(p.View) && p.View.Epoch > w.view.Epoch+1 {
			w.t.Fatalf("node %d asks for epoch %d, the view is %d", h.id, p.View.Epoch, w.view.Epoch)
		}
	}
}

func (h *host) write(records []Record) {
	for _, r := range records {
		r.Payload = slices.Clone(r.Payload)
		if r.Whole {
			h.records = nil
		}
		h.records = append(h.records, r)
	}
}

// tear has a node end while it writes its journal: of what the round wants done only some of the records are.
func (w *world) tear(h *host, n int) {
	h.b.Tick(w.clock())
	h.out.Reset()
	h.b.Round(w.clock(), &h.out)
	h.write(h.out.Records[:min(n, len(h.out.Records))])
	h.b = nil
}

// deliver gives the i-th message that is on its way to its node.
func (w *world) deliver(i int) {
	e := w.net[i]
	w.net = slices.Delete(w.net, i, i+1)
	h := w.nodes[e.m.To.Node-1]
	if h.b == nil {
		return
	}
	h.b.Tick(w.clock())
	if err := h.b.Chain().Receive(e.from, e.m); err != nil && !errors.Is(err, chain.ErrMisdirected) {
		w.t.Fatalf("receive: %v", err)
	}
}

// takeover replaces a primary whose lease has ended.
func (w *world) takeover() bool {
	primary := w.nodes[w.view.Primary().Node-1]
	if primary.b != nil || primary.lease > w.now {
		return false
	}
	return w.replace(nil)
}

// replace seals everybody, except a node that does not hear of it unless it is the primary, and has the newest one follow.
func (w *world) replace(deaf *host) bool {
	w.owed = w.view.Epoch
	var reports []chain.Report
	for _, h := range w.nodes {
		if h.b == nil || h == deaf && h.id != w.view.Primary().Node {
			continue
		}
		h.b.Chain().Seal(w.view.Epoch)
		w.round(h)
		reports = append(reports, h.reports...)
	}
	next, err := chain.Takeover(w.view, chain.First, reports)
	if err != nil {
		return false // a member that has what was answered must come back
	}
	return w.commit(next)
}

// send asks the node whose turn it is.
func (w *world) send(a *ask) Turned {
	for _, h := range w.nodes {
		if h.b == nil || !h.turn {
			continue
		}
		w.key++
		req := a.req
		in := bucket.Input{Zone: testZone, User: a.user, Reply: a.reply, Req: &req, Key: w.key}
		h.b.Tick(w.clock())
		if turned := h.b.Request(w.clock(), &in, nil); turned != Later {
			return turned
		}
	}
	return Later
}

// hear checks what a client is told: the same as before, and no token twice.
func (w *world) hear(e *bucket.Effect) {
	if e.Kind != bucket.Reply {
		return
	}
	i := slices.IndexFunc(w.order, func(id string) bool { return w.asked[id].reply == e.To })
	if i < 0 {
		w.t.Fatalf("somebody is told who asked nothing: %s", e.To)
	}
	a := w.asked[w.order[i]]
	text := string(e.Body.AppendJSON(nil))
	if refusal, refused := e.Body.(*subjects.Refusal); refused && (refusal.Code == 503 || refusal.Code == 410) {
		a.again = true
		return // it may ask again; 410 lost: the grant that it asks for again is over
	}
	grant, _ := e.Body.(*subjects.Grant)
	switch {
	case a.told == "":
		a.told, a.grant = text, grant
		if grant != nil && a.req.Op != subjects.OpRenew {
			if last := w.tokens[grant.Name]; grant.Token <= last {
				w.t.Fatalf("token %d after %d of the same lock", grant.Token, last)
			}
			if w.used[grant.Token] {
				w.t.Fatalf("token %d twice", grant.Token)
			}
			w.tokens[grant.Name], w.used[grant.Token] = grant.Token, true
		}
	case grant != nil && a.grant != nil:
		if grant.Token != a.grant.Token || grant.Key != a.grant.Key || grant.Ticket != a.grant.Ticket {
			w.t.Fatalf("two replies:\n%s\n%s", a.told, text)
		}
	case text != a.told:
		w.t.Fatalf("two replies:\n%s\n%s", a.told, text)
	}
}

func (w *world) acquire(id, name string, wait time.Duration) {
	a := &ask{user: "u" + id, reply: "_INBOX." + id}
	a.req = subjects.Request{Op: subjects.OpAcquire, Name: name, RequestID: id, Kind: subjects.Static,
		TTL: 24 * time.Hour, Wait: wait, Has: subjects.HasTTL | subjects.HasWait}
	w.asked[id] = a
	w.order = append(w.order, id)
	w.send(a)
}

func (w *world) release(id string, of *ask) {
	a := &ask{user: of.user, reply: "_INBOX." + id}
	a.req = subjects.Request{Op: subjects.OpRelease, Name: of.req.Name, RequestID: id, Key: of.grant.Key}
	w.asked[id] = a
	w.order = append(w.order, id)
	w.send(a)
}

// heal brings everything up and lets it run until nothing happens any more.
func (w *world) heal() {
	for _, h := range w.nodes {
		if h.b == nil {
			w.start(h)
		}
	}
	for i := range 400 {
		if i%50 == 10 && (!w.primary().acting || w.owed == w.view.Epoch) {
			next := w.view.Clone() // whoever has somebody sealed owes a view
			next.Epoch++
			w.commit(next)
		}
		w.pass(10*ms, func(*host) bool { return true })
		for _, h := range w.nodes {
			w.round(h)
		}
		for len(w.net) > 0 {
			w.deliver(0)
		}
	}
	if len(w.view.Chain) != len(w.nodes) || !w.primary().acting {
		w.t.Fatalf("the cluster does not come together again: %v\n%s", w.view, w.describe())
	}
	for _, id := range w.order { // whoever awaits an answer asks again
		if a := w.asked[id]; a.told == "" {
			w.send(a)
		}
	}
	for range 20 {
		w.pass(10*ms, func(*host) bool { return true })
		for _, h := range w.nodes {
			w.round(h)
		}
		for len(w.net) > 0 {
			w.deliver(0)
		}
	}
}

func (w *world) primary() *Bucket { return w.nodes[w.view.Primary().Node-1].b }

func (w *world) describe() string {
	text := ""
	for _, h := range w.nodes {
		if h.b == nil {
			text += fmt.Sprintf("node %d is down\n", h.id)
			continue
		}
		text += h.b.Chain().Describe() + "\n"
	}
	return text
}

// check compares the tables of all nodes with each other and with what clients were told.
func (w *world) check() {
	want := w.primary().Table().AppendSnapshot(nil)
	for _, h := range w.nodes {
		if got := h.b.Table().AppendSnapshot(nil); string(got) != string(want) {
			w.t.Fatalf("the table of node %d differs from the primary's:\n%s\n%s", h.id, h.b.Table().Describe(),
				w.primary().Table().Describe())
		}
	}
	released := make(map[uint64]bool)
	for _, id := range w.order {
		if a := w.asked[id]; a.req.Op == subjects.OpRelease {
			released[a.req.Key] = true // asked for; whether it was answered or not
		}
	}
	for _, id := range w.order {
		a := w.asked[id]
		if a.grant == nil || released[a.grant.Key] {
			continue
		}
		recs, _, _ := w.primary().Table().List(testZone, &subjects.Request{Op: subjects.OpList, Limit: 1000}, w.clock())
		held := slices.ContainsFunc(recs, func(r subjects.Record) bool {
			return r.Name == a.req.Name && slices.ContainsFunc(r.Holders, func(h subjects.Holder) bool { return h.Token == a.grant.Token })
		})
		if !held {
			w.t.Fatalf("the grant %s is gone: token %d of %s\n%s", id, a.grant.Token, a.req.Name, w.primary().Table().Describe())
		}
	}
}

var _ fataler = (*testing.T)(nil)
