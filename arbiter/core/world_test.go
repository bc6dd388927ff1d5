package core

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

const (
	ms     = int64(time.Millisecond)
	second = int64(time.Second)
)

// fsm is what the tests replicate: a list of texts, and who is the one. Only the one may act, and only under a lease.
type fsm struct {
	Log []entry
	One uint64 // node number
	Sum uint64 // of everything that was applied
}

type entry struct {
	Change uint64
	Text   string
}

func (f *fsm) apply(c Command) {
	f.Log = append(f.Log, entry{c.Change, string(c.Data)})
	f.Sum = xxhash.Sum64String(fmt.Sprint(f.Sum, c.Change, string(c.Data)))
	var to, from uint64
	if _, err := fmt.Sscanf(string(c.Data), "one %d after %d", &to, &from); err == nil && from == f.One {
		f.One = to // by compare-and-set, as views are
	}
}

func (f *fsm) digest() uint64 { return f.Sum }

func (f *fsm) snapshot() []byte {
	b, err := json.Marshal(f)
	if err != nil {
		panic(err)
	}
	return b
}

// machine is a node with the caller's part around it.
type machine struct {
	id     uint64
	life   uint64
	cfg    Config
	disk   Start
	node   *Node // nil: it is down
	fsm    fsm
	offset int64   // of its clock
	rate   float64 // of its clock
	paused bool
	tear   bool // crash as soon as it has stored something, before anything is sent
	inbox  []packet
	gone   []uint64 // connections of which it has not been told yet that they closed
	next   int64    // real time at which it wants to be called

	lease   int64 // its own clock: it believes in its lease until then
	lastID  uint64
	texts   map[uint64]string // of its proposals that wait
	done    []Done
	reads   []Read
	events  []Event
	readAt  map[uint64]int // how much was committed when a read was asked for
	readCut map[uint64]bool
}

type packet struct {
	from, to uint64
	raw      []byte
	at       int64 // real time of delivery
	order    uint64
}

// world is some machines, a network between them, and what must never happen.
type world struct {
	now      int64 // real time
	machines []*machine
	cfg      Config
	flying   []packet
	order    uint64
	rnd      *rand.Rand
	loss     float64
	twice    float64
	delay    [2]int64 // nanoseconds, from and to
	cut      map[[2]uint64]bool
	trace    func(format string, args ...any)
	hold     func(from, to uint64, k kind, m *pb.Message) bool // what is held back; m is nil for what is not Raft's
	held     []packet

	texts     map[string]bool // that are committed
	committed []entry         // by anybody, in order
	acked     []string
	wrong     []string
}

func newWorld(seed uint64, cfg Config, machines int) *world {
	w := &world{
		now: second, cfg: cfg, rnd: rand.New(rand.NewPCG(seed, 1)), delay: [2]int64{ms, ms}, cut: map[[2]uint64]bool{},
		trace: func(string, ...any) {}, texts: map[string]bool{},
	}
	for i := range machines {
		w.machines = append(w.machines, &machine{id: uint64(i + 1), rate: 1})
	}
	first := w.machines[0]
	p := Found(first.id, first.fsm.snapshot())
	first.disk.Merge(&p)
	for _, m := range w.machines {
		w.start(m)
	}
	return w
}

func testConfig() Config {
	return Config{Lease: 800 * ms, Renew: 150 * ms, Heartbeat: 40 * ms, Election: 200 * ms}
}

func (m *machine) clock(now int64) int64 { return m.offset + int64(float64(now)*m.rate) }

// real is when its clock shows that.
func (m *machine) real(clock int64) int64 {
	if clock == Never {
		return Never
	}
	return int64(float64(clock-m.offset)/m.rate) + 1
}

func (w *world) find(id uint64) *machine { return w.machines[id-1] }

func (w *world) start(m *machine) {
	m.life++
	cfg := w.cfg
	cfg.ID, cfg.Life, cfg.Reluctant = m.id, m.life, m.cfg.Reluctant
	cfg.MayLease = m.cfg.MayLease
	m.fsm = fsm{}
	m.lease, m.lastID, m.inbox, m.paused = 0, 0, nil, false
	m.texts, m.readAt, m.readCut = map[uint64]string{}, map[uint64]int{}, map[uint64]bool{}
	node, err := New(cfg, m.disk, m.clock(w.now))
	if err != nil {
		w.fail("start %d: %v", m.id, err)
		return
	}
	m.node = node
	w.connected(m)
	if err := node.Identify(m.id, []byte("note")); err != nil {
		w.fail("identify: %v", err)
	}
	w.carryOut(m)
}

// connected tells everybody that a machine is there.
func (w *world) connected(m *machine) {
	for _, o := range w.machines {
		o.gone = slices.DeleteFunc(o.gone, func(id uint64) bool { return id == m.id })
		if o.node != nil && o != m {
			o.node.Peer(m.id, true)
		}
	}
}

func (w *world) fail(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf("%.3fs: ", float64(w.now)/float64(second))+fmt.Sprintf(format, args...))
}

func (w *world) crash(m *machine) { m.node, m.inbox, m.next = nil, nil, Never }

func (w *world) isCut(a, b uint64) bool { return w.cut[[2]uint64{min(a, b), max(a, b)}] }

func (w *world) setCut(a, b uint64, cut bool) { w.cut[[2]uint64{min(a, b), max(a, b)}] = cut }

func (w *world) send(from uint64, out []Message) {
	for _, msg := range out {
		if msg.To == from || msg.To == 0 || int(msg.To) > len(w.machines) {
			w.fail("%d sends to %d", from, msg.To)
			continue
		}
		copies := 1
		if w.rnd.Float64() < w.twice {
			copies = 2
		}
		for range copies {
			if w.isCut(from, msg.To) || w.rnd.Float64() < w.loss {
				continue
			}
			w.order++
			at := w.now + w.delay[0]
			if d := w.delay[1] - w.delay[0]; d > 0 {
				at += w.rnd.Int64N(d)
			}
			w.put(packet{from, msg.To, slices.Clone(msg.Frame), at, w.order})
		}
	}
}

// put sends a frame on its way, without what is held back.
func (w *world) put(p packet) {
	if w.hold == nil {
		w.flying = append(w.flying, p)
		return
	}
	f, err := decode(p.raw)
	if err != nil {
		w.fail("%d sends what cannot be read: %v", p.from, err)
		return
	}
	if f.kind != kindRaft {
		if w.hold(p.from, p.to, f.kind, nil) {
			w.held = append(w.held, p)
		} else {
			w.flying = append(w.flying, p)
		}
		return
	}
	for _, m := range f.raft {
		raw, err := proto.Marshal(m)
		if err != nil {
			w.fail("%v", err)
		}
		p.raw = encodeRaft(p.from, p.to, [][]byte{raw})
		if w.hold(p.from, p.to, f.kind, m) {
			w.held = append(w.held, p)
		} else {
			w.flying = append(w.flying, p)
		}
	}
}

// release sends what was held back, as far as it is not held back still.
func (w *world) release() {
	held := w.held
	w.held = nil
	for _, p := range held {
		p.at = w.now + w.delay[0]
		w.put(p)
	}
}

// turn gives a machine everything that waits for it.
func (w *world) turn(m *machine) {
	if m.node == nil || m.paused {
		return
	}
	m.node.Tick(m.clock(w.now))
	inbox := m.inbox
	m.inbox = nil
	for _, p := range inbox {
		if err := m.node.Receive(p.from, p.raw); err != nil {
			w.fail("%d refuses a frame of %d: %v", m.id, p.from, err)
		}
	}
	for _, id := range m.gone {
		m.node.Peer(id, false)
	}
	m.gone = nil
	w.carryOut(m)
}

// carryOut does what the node wants.
func (w *world) carryOut(m *machine) {
	for m.node.HasReady() {
		out := m.node.Ready()
		if m.node.Err() != nil {
			break
		}
		if out.Persist != nil {
			m.disk.Merge(out.Persist)
			if m.tear {
				m.tear = false
				w.crash(m)
				return
			}
		}
		w.send(m.id, out.Messages)
		w.apply(m, &out)
		if out.Snapshot {
			if err := m.node.Snapshot(m.fsm.snapshot()); err != nil {
				w.fail("snapshot: %v", err)
			}
		}
		m.node.Advance(m.fsm.digest())
	}
	if err := m.node.Err(); err != nil {
		w.fail("%d failed: %v", m.id, err)
		w.crash(m)
		return
	}
	m.next = m.real(m.node.Next())
	w.check()
}

func (w *world) apply(m *machine, out *Output) {
	if out.Restore != nil {
		m.fsm = fsm{}
		if err := json.Unmarshal(out.Restore.Data, &m.fsm); err != nil {
			w.fail("restore: %v", err)
		}
		w.compare(m, 0)
	}
	for _, c := range out.Apply {
		m.fsm.apply(c)
		w.compare(m, len(m.fsm.Log)-1)
		if c.Proposal != 0 {
			if m.texts[c.Proposal] != string(c.Data) {
				w.fail("%d: proposal %d is %q, was %q", m.id, c.Proposal, c.Data, m.texts[c.Proposal])
			}
			delete(m.texts, c.Proposal)
			w.acked = append(w.acked, string(c.Data))
		}
	}
	for _, d := range out.Done {
		if text, ok := m.texts[d.ID]; ok && d.Outcome == Refused {
			if slices.ContainsFunc(w.committed, func(e entry) bool { return e.Text == text }) {
				w.fail("%q was refused and is committed", text)
			}
			m.texts[d.ID] = "refused: " + text
		}
		if d.Outcome == Unknown {
			delete(m.texts, d.ID)
		}
		m.done = append(m.done, d)
	}
	for _, r := range out.Reads {
		if have := len(m.fsm.Log); have < m.readAt[r.ID] {
			w.fail("%d: a read has %d commands, %d were committed when it began", m.id, have, m.readAt[r.ID])
		}
		m.reads = append(m.reads, r)
	}
	for _, e := range out.Events {
		if g, ok := e.(Granted); ok {
			if g.Until <= m.lease {
				w.fail("%d: lease went back", m.id)
			}
			m.lease = g.Until
		}
		m.events = append(m.events, e)
		w.trace("%d: %s", m.id, describeEvent(e))
	}
}

// compare checks that what a machine has, from some entry on, is what everybody has, and that each text is there once.
func (w *world) compare(m *machine, from int) {
	for i := from; i < len(m.fsm.Log); i++ {
		e := m.fsm.Log[i]
		if i >= len(w.committed) {
			if w.texts[e.Text] {
				w.fail("%q was applied twice", e.Text)
			}
			w.texts[e.Text] = true
			w.committed = append(w.committed, e)
			w.trace("committed: %q", e.Text)
		}
		if w.committed[i] != e {
			w.fail("%d has %v where others have %v", m.id, e, w.committed[i])
		}
	}
}

// acts says that a machine thinks that it is the one.
func (w *world) acts(m *machine) bool { return m.fsm.One == m.id && w.believes(m) }

func (w *world) believes(m *machine) bool {
	return m.node != nil && m.clock(w.now) < m.lease
}

// check looks for what must never be.
func (w *world) check() {
	var acting []uint64
	for _, m := range w.machines {
		if w.acts(m) {
			acting = append(acting, m.id)
		}
	}
	if len(acting) > 1 {
		w.fail("%v act at once", acting)
	}
	l := w.leader()
	if l == nil {
		return
	}
	now := l.clock(w.now)
	if l.paused || now < l.node.lead.takeFrom {
		return
	}
	for _, m := range w.machines {
		n := l.node.lead.leases[m.id]
		if w.believes(m) && (n == nil || now >= n.until) {
			w.fail("%d believes in a lease that leader %d counts as ended", m.id, l.id)
		}
	}
}

// leader is the machine that leads in the highest term that there is.
func (w *world) leader() *machine {
	var best *machine
	term := uint64(0)
	for _, m := range w.machines {
		if m.node == nil {
			continue
		}
		if m.node.elect.term > term {
			best, term = nil, m.node.elect.term
		}
		if m.node.Leading() && m.node.elect.term == term {
			best = m
		}
	}
	return best
}

// run lets time pass, event by event.
func (w *world) run(d int64) {
	end := w.now + d
	for len(w.wrong) == 0 {
		at := end
		for _, p := range w.flying {
			at = min(at, p.at)
		}
		for _, m := range w.machines {
			if m.node != nil && !m.paused {
				at = min(at, m.next)
				if len(m.gone) > 0 {
					at = w.now
				}
			}
		}
		w.now = max(w.now, at)
		if w.now >= end {
			w.now = end
			return
		}
		w.deliver()
		for _, m := range w.machines {
			if m.node != nil && !m.paused && (len(m.inbox) > 0 || len(m.gone) > 0 || w.now >= m.next) {
				w.turn(m)
			}
		}
	}
}

func (w *world) deliver() {
	slices.SortStableFunc(w.flying, func(a, b packet) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.order, b.order)) })
	for len(w.flying) > 0 && w.flying[0].at <= w.now {
		p := w.flying[0]
		w.flying = w.flying[1:]
		if m := w.find(p.to); m.node != nil && len(m.inbox) < 10_000 {
			m.inbox = append(m.inbox, p)
		}
	}
}

// until lets time pass until something is so; it gives up after limit.
func (w *world) until(limit int64, cond func() bool) bool {
	for end := w.now + limit; w.now < end && len(w.wrong) == 0; {
		if cond() {
			return true
		}
		w.run(min(ms, end-w.now))
	}
	return cond()
}

func (w *world) propose(m *machine, text string, only Condition) error {
	if m.node == nil || m.paused {
		return ErrBusy
	}
	m.node.Tick(m.clock(w.now))
	m.lastID++
	m.texts[m.lastID] = text
	err := m.node.Propose(m.lastID, []byte(text), only)
	if err != nil {
		delete(m.texts, m.lastID)
	}
	w.carryOut(m)
	return err
}

// take makes another machine the one, by the rule: the leases of the one before have ended.
func (w *world) take(leader *machine, to uint64) error {
	var ended []uint64
	if leader.fsm.One != 0 {
		ended = []uint64{leader.fsm.One}
	}
	w.order++
	return w.propose(leader, fmt.Sprintf("one %d after %d (%d)", to, leader.fsm.One, w.order), Condition{Term: leader.node.elect.term, Ended: ended})
}

func (w *world) read(m *machine) {
	if m.node == nil || m.paused {
		return
	}
	w.order++
	m.readAt[w.order] = len(w.committed)
	m.node.Tick(m.clock(w.now))
	if err := m.node.ReadIndex(w.order); err != nil {
		delete(m.readAt, w.order)
	}
	w.carryOut(m)
}

func (w *world) member(m *machine, step Step, id uint64) error {
	if m.node == nil || m.paused {
		return ErrBusy
	}
	m.node.Tick(m.clock(w.now))
	m.lastID++
	err := m.node.ChangeMembership(m.lastID, step, id)
	w.carryOut(m)
	return err
}

// grow makes the first machines voters, and the rest of learners learners.
func (w *world) grow(voters, learners int) {
	for id := uint64(2); id <= uint64(voters+learners); id++ {
		w.insist(AddLearner, id)
		if id <= uint64(voters) {
			w.insist(Promote, id)
		}
	}
	// Everybody knows of it.
	w.until(5*second, func() bool {
		for _, m := range w.machines[:voters+learners] {
			if len(m.node.conf.Voters) != voters || len(m.node.conf.Learners) != learners {
				return false
			}
		}
		return true
	})
}

func (w *world) insist(step Step, id uint64) {
	var err error
	if !w.until(10*second, func() bool {
		l := w.leader()
		if l == nil {
			return false
		}
		done := l.node.isLearner(id)
		if step == Promote {
			done = l.node.isVoter(id)
		}
		if !done && l.node.lead.member == nil {
			err = w.member(l, step, id)
		}
		return done
	}) {
		w.fail("step %d of %d: %v", step, id, err)
	}
}

func describeEvent(e Event) string {
	return strings.TrimPrefix(fmt.Sprintf("%T%+v", e, e), "core.")
}

func marshal(m *pb.Message) ([]byte, error) { return proto.Marshal(m) }
