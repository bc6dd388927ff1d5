package broker

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/subjects"
)

const (
	// toldSubject is where a node says to the others what it has told the clients.
	toldSubject = "told"

	// aboutCluster is what an event of the whole cluster is about; all others are about the node of that identifier.
	aboutCluster = "cluster"

	// backTime is how long a node that came back is given to tell so by itself, when it serves.
	backTime = 10 * time.Second

	// modeTime is how long the cluster must be in a mode before it is told, so that a leader's election is not.
	modeTime = 500 * time.Millisecond

	// lookTime is how often a node looks without being told of a change: its lease may have ended.
	lookTime = 250 * time.Millisecond
)

// told is what a node says on toldSubject.
type told struct {
	About string `json:"about"`
	Value string `json:"value"`
}

// events tells the zones when nodes come and go and how the cluster is.
type events struct {
	mu   sync.Mutex
	a    *announcer
	wake chan struct{} // holds one
}

func newEvents() *events { return &events{a: newAnnouncer(), wake: make(chan struct{}, 1)} }

// notice says that something may look different.
func (e *events) notice() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// openEvents begins to listen to what other nodes tell.
func (l *links) openEvents() error {
	_, err := l.conn.Subscribe(toldSubject, func(msg *nats.Msg) {
		var t told
		if err := json.Unmarshal(msg.Data, &t); err != nil {
			l.d.metrics.misdirected.Inc()
			return
		}
		l.d.heard(t)
	})
	if err != nil {
		return fmt.Errorf("subscribe to %s: %w", toldSubject, err)
	}
	return nil
}

func (d *Daemon) heard(t told) {
	d.events.mu.Lock()
	defer d.events.mu.Unlock()
	if n := d.state.Load().NodeByID(t.About); n != nil && n.Number != d.number {
		d.stopping.put(n.Number, statusOf(t.Value) == statusStopping)
	}
	d.events.a.heard(t.About, t.Value)
}

// tellEvents watches as long as the daemon runs.
func (d *Daemon) tellEvents() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-d.events.wake:
		case <-timer.C:
		case <-d.over:
			return
		}
		now, h := boottime.Now(), d.health()
		d.events.mu.Lock()
		tell, next := d.events.a.look(now, d.sights(&h), d.place(&h))
		d.events.mu.Unlock()
		for _, n := range tell {
			d.publishEvent(h.state, n)
		}
		timer.Reset(min(lookTime, time.Duration(max(0, next-now))))
	}
}

// announce tells at once that this node serves, or stops, and with it the cluster if nobody else is there.
func (d *Daemon) announce(status string) {
	h := d.health()
	n := h.state.Node(d.number)
	if n == nil {
		return // it was removed from the cluster, which the others have told
	}
	value := sightOf(n, status)
	before := value // of a node that stops
	d.events.mu.Lock()
	if status == statusUp {
		before = ""
		d.events.a.begin(d.sights(&h)) // the others have told what was before
	} else {
		d.stopping.put(n.Number, true)
	}
	d.events.a.seen[n.ID] = value
	d.events.a.heard(n.ID, value)
	d.events.mu.Unlock()
	d.publishEvent(h.state, notice{n.ID, before, value})
	if h.reached() > 1 {
		return
	}
	if status == statusUp {
		d.publishEvent(h.state, notice{aboutCluster, modeNoQuorum, h.mode()})
	} else {
		d.publishEvent(h.state, notice{aboutCluster, h.mode(), modeNoQuorum})
	}
}

// place is how many nodes are to tell something rather than this one: those with lower numbers that are there.
func (d *Daemon) place(h *health) (place int) {
	for i := range h.state.Nodes {
		if n := &h.state.Nodes[i]; !n.Arbiter && n.Number < d.number && !h.gone(n.Number) {
			place++
		}
	}
	return place
}

// sights is how everything looks to this node. The events' lock is held.
func (d *Daemon) sights(h *health) map[string]sight {
	sights := make(map[string]sight, len(h.state.Nodes)+1)
	place := d.place(h)
	sights[aboutCluster] = sight{value: h.mode(), place: place, after: modeTime}
	for i := range h.state.Nodes {
		n := &h.state.Nodes[i]
		if n.Arbiter {
			continue
		}
		status := d.status(n)
		s := sight{value: sightOf(n, status), place: place}
		switch {
		case n.Number == d.number:
			s.place = h.reached() - 1 // the others know better whether it is there
		case n.Number < d.number && !h.gone(n.Number):
			s.place-- // nobody waits for the one that it is about
		}
		switch was := d.events.a.told[n.ID]; {
		case isUp(statusOf(was)):
		case isUp(status):
			s.after = backTime
		case was != "":
			s.value = was // it is as gone as before
		}
		sights[n.ID] = s
	}
	return sights
}

// sightOf is all that clients are told of a node, as one text that begins with its status.
func sightOf(n *shared.Node, status string) string {
	return strings.Join(append([]string{status, n.Name, n.Location}, urls(n)...), "\n")
}

func statusOf(value string) string {
	status, _, _ := strings.Cut(value, "\n")
	return status
}

func isUp(status string) bool { return status == statusUp || status == statusDraining }

// publishEvent tells all zones, and the other nodes that it is told.
func (d *Daemon) publishEvent(state *shared.State, n notice) {
	event := clusterEvent(n)
	if n.about != aboutCluster {
		event = serverEvent(state, n)
	}
	body := event.AppendJSON(nil)
	for _, z := range *d.zones.Load() { // order: each has its own clients
		z.publish(event.Subject, body)
	}
	text, err := json.Marshal(told{n.about, n.now})
	if err == nil {
		err = d.links.conn.Publish(toldSubject, text)
	}
	if err != nil {
		d.log.Debug("the other nodes are not told of an event", "error", err)
	}
}

func clusterEvent(n notice) *subjects.ServerEvent {
	kind := "mode"
	switch modeNoQuorum {
	case n.now:
		kind = "down"
	case n.before:
		kind = "up"
	}
	return &subjects.ServerEvent{Subject: subjects.ClusterEventSubject(kind), Type: "cluster." + kind, Mode: n.now}
}

// serverEvent is that of a node, which may not be known any more.
func serverEvent(state *shared.State, n notice) *subjects.ServerEvent {
	status := statusOf(n.now)
	kind := "changed"
	switch {
	case !isUp(status):
		kind = "down"
	case !isUp(statusOf(n.before)):
		kind = "up"
	}
	event := &subjects.ServerEvent{Subject: subjects.ServerEventSubject(kind, n.about), Type: "server." + kind, Node: n.about, Status: status}
	if node := state.NodeByID(n.about); node != nil {
		event.Name = node.Name
		if !state.Settings.HideServers {
			event.URLs = urls(node)
		}
	}
	return event
}

// nodeSet is a set of nodes that any goroutine may look at and change.
type nodeSet struct {
	mu sync.RWMutex
	m  map[uint64]bool
}

func (s *nodeSet) has(node uint64) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.m[node]
}

func (s *nodeSet) put(node uint64, in bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !in {
		delete(s.m, node)
		return
	}
	if s.m == nil {
		s.m = make(map[uint64]bool)
	}
	s.m[node] = true
}
