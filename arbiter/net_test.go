package arbiter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/opencluster/oclocks/internal/boottime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// far is longer than any test waits for what must come.
const far = 20 * time.Second

// list is the FSM of the tests.
type list struct {
	mu   sync.Mutex
	have []string
	at   uint64
}

// unknown is a command that a list does not know how to apply.
const unknown = "of another version"

var errTooOld = errors.New("too old")

func (l *list) Apply(change uint64, command []byte) (any, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if change <= l.at {
		panic(fmt.Sprintf("change %d after %d", change, l.at))
	}
	if string(command) == unknown {
		return nil, errTooOld
	}
	l.have, l.at = append(l.have, string(command)), change
	return len(l.have), nil
}

func (l *list) Digest() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return uint64(len(l.have))
}

func (l *list) Snapshot() []byte {
	l.mu.Lock()
	defer l.mu.Unlock()
	b, err := json.Marshal(l.have)
	if err != nil {
		panic(err)
	}
	return b
}

func (l *list) Restore(change uint64, snapshot []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.have, l.at = nil, change
	return json.Unmarshal(snapshot, &l.have)
}

func (l *list) texts() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.have)
}

// group is some arbiters in this process, connected by function calls.
type group struct {
	t     testing.TB
	mu    sync.Mutex
	by    map[uint64]*member
	all   []*member
	quiet *slog.Logger
}

type member struct {
	g      *group
	number uint64
	path   string // of its store, empty: in memory
	store  Store
	fsm    *list
	a      *Arbiter
	deaf   bool // nothing goes in or out, as if it were stopped
	lease  Granted
	leads  Leadership
	events []Event
}

func newGroup(t testing.TB, disk bool, count int) *group {
	g := &group{t: t, by: map[uint64]*member{}, quiet: slog.New(slog.NewTextHandler(io.Discard, nil))}
	dir := t.TempDir()
	for i := range count {
		m := &member{g: g, number: uint64(i + 1)}
		if disk {
			m.path = filepath.Join(dir, fmt.Sprint("control", i, ".db"))
		}
		g.all = append(g.all, m)
		m.start(i == 0)
	}
	t.Cleanup(func() {
		for _, m := range g.all {
			m.kill()
			if m.store != nil {
				must(t, m.store.Close())
			}
		}
	})
	return g
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start starts a member with its store, or with a new one.
func (m *member) start(found bool) {
	m.g.t.Helper()
	var err error
	if m.store == nil {
		if m.path == "" {
			m.store, err = NewMemoryStore()
		} else {
			m.store, err = OpenStore(m.path)
		}
		must(m.g.t, err)
	}
	m.fsm = &list{}
	m.g.mu.Lock()
	m.lease, m.leads, m.events = Granted{}, Leadership{}, nil
	m.g.mu.Unlock()
	a, err := Start(Config{
		Store: m.store, FSM: m.fsm, Found: found, Logger: m.g.quiet, Events: m.event,
		Send: func(to uint64, frame []byte) { m.g.send(m, to, frame) },
	})
	must(m.g.t, err)
	must(m.g.t, a.Identify(m.number, []byte("note")))
	m.g.mu.Lock()
	m.a = a
	m.g.by[m.store.RaftID()] = m
	m.g.mu.Unlock()
}

func (m *member) event(e Event) {
	m.g.mu.Lock()
	defer m.g.mu.Unlock()
	m.events = append(m.events, e)
	switch e := e.(type) {
	case Granted:
		m.lease = e
	case Leadership:
		m.leads = e
	}
}

// kill ends a member; its connections close. A store on disk is closed too.
func (m *member) kill() {
	m.g.mu.Lock()
	a := m.a
	m.a = nil
	m.g.mu.Unlock()
	if a == nil {
		return
	}
	a.Close()
	if m.path != "" {
		must(m.g.t, m.store.Close())
		m.store = nil
	}
}

func (g *group) closeConnections(of uint64) {
	for _, m := range g.alive() {
		m.a.Peer(of, false)
	}
}

func (g *group) send(from *member, to uint64, frame []byte) {
	g.mu.Lock()
	target := g.by[to]
	lost := target == nil || target.a == nil || target.deaf || from.deaf
	var a *Arbiter
	if !lost {
		a = target.a
	}
	g.mu.Unlock()
	if a != nil {
		a.Receive(from.store.RaftID(), frame)
	}
}

func (g *group) alive() []*member {
	g.mu.Lock()
	defer g.mu.Unlock()
	var list []*member
	for _, m := range g.all {
		if m.a != nil && !m.deaf {
			list = append(list, m)
		}
	}
	return list
}

// leader is a member that leads and is alive, nil if there is none.
func (g *group) leader() *member {
	var best *member
	for _, m := range g.alive() {
		if s := m.a.Status(); s.Leading && (best == nil || s.Term > best.a.Status().Term) {
			best = m
		}
	}
	return best
}

func (g *group) wait(what string, cond func() bool) {
	g.t.Helper()
	end := time.After(far)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-end:
			for _, m := range g.alive() {
				g.t.Logf("%+v", m.a.Status())
			}
			g.t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}

func (g *group) newLeader(not *member) *member {
	g.t.Helper()
	var l *member
	g.wait("a leader", func() bool {
		l = g.leader()
		return l != nil && l != not
	})
	return l
}

func (m *member) raft() uint64 { return m.store.RaftID() }

func (m *member) holds() bool {
	m.g.mu.Lock()
	defer m.g.mu.Unlock()
	return boottime.Now() < m.lease.Until
}

// retry repeats a step of the membership until it is possible.
func (g *group) retry(what string, step func(ctx context.Context, l *Arbiter) error) {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), far)
	defer cancel()
	g.wait(what, func() bool {
		l := g.leader()
		if l == nil {
			return false
		}
		err := step(ctx, l.a)
		if err != nil && !errors.Is(err, ErrMembership) && !errors.Is(err, ErrNotLeader) && !errors.Is(err, ErrBusy) {
			g.t.Fatalf("%s: %v", what, err)
		}
		return err == nil
	})
}

// grow makes everybody a voter.
func (g *group) grow() {
	g.t.Helper()
	for _, m := range g.all[1:] {
		g.retry("add", func(ctx context.Context, l *Arbiter) error { return l.AddLearner(ctx, m.raft()) })
		g.retry("promote", func(ctx context.Context, l *Arbiter) error { return l.Promote(ctx, m.raft()) })
	}
	g.wait("everybody to know", func() bool {
		return !slices.ContainsFunc(g.all, func(m *member) bool { return len(m.a.Status().Voters) != len(g.all) })
	})
}

func (m *member) propose(text string) {
	m.g.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), far)
	defer cancel()
	_, _, err := m.a.Propose(ctx, []byte(text))
	must(m.g.t, err)
}
