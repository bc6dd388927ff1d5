package sim

import (
	"math/rand/v2"
	"slices"
	"time"
)

// theme is a mix of few faults that are dangerous together, and what makes them more so. What it does not name is drawn as always, but
// that messages between nodes are neither lost nor late by themselves.
type theme struct {
	name  string
	kinds []string
	set   func(m *mix, r *rand.Rand)
}

var themes = []theme{
	// Ends of histories get lost, while who was told of them believes in it for long, in silence, and others want the same.
	{"recoveries", []string{"in-sync set gone at once", "primary killed in a recovery", "journal lost", "burst of requests"},
		func(m *mix, r *rand.Rand) {
			m.clients, m.think, m.brief, m.silent, m.keep = 6+r.IntN(5), (5<<r.IntN(4))*ms, 0.8, 0.8, 15*second
			m.nodes = max(m.nodes, 4)
			m.time, m.pause = max(m.time, 35*second), (500+r.Int64N(1000))*ms
			m.giveUp = time.Second
			m.buckets = 1 << r.IntN(3)
			if r.IntN(2) == 0 {
				m.brief, m.silent = 0.3, 0.5
			}
			m.acks = "first"
			m.maxLease = time.Duration(2+r.IntN(2)) * time.Second
			if r.IntN(2) > 0 {
				m.maxLease = time.Duration(8+r.IntN(12)) * time.Second
			}
		}},
	// Leases are granted, and end, at the limits of what is promised of clocks and links.
	{"leases", []string{
		"machine hears late, then is not heard", "machine is not heard at all", "machine is heard late", "machine stands still", "leader isolated",
		"goroutine stalled", "leadership transferred", "machine isolated", "machine cut off as it gets a lease again",
		"primary silent until its buckets are taken", "machine comes back as its buckets are taken", "primary cut off as it asks for a view",
	}, func(m *mix, r *rand.Rand) {
		if r.IntN(2) == 0 {
			m.loss = r.Float64() * 0.1
		}
		m.think = (5 << r.IntN(3)) * ms
		m.pause = (500 + r.Int64N(1000)) * ms
		m.clients = max(m.clients, 8)
		m.edge = !m.wild && r.IntN(3) > 0
		m.skewed = m.skewed || m.edge
	}},
	// Buckets are split while many hold and wait, some of them with nothing but a ticket.
	{"halves", []string{"buckets doubled", "process killed", "machine crashed", "journal lost", "node leaves and comes back"}, func(m *mix, r *rand.Rand) {
		m.crowd(r)
		m.tools = 4
	}},
	// Primaries change by intent, while some links are slow: nobody has the same as the others.
	{"moves", []string{
		"link slow", "link far", "network slow", "all buckets moved by hand", "bucket moved by hand", "primary killed", "node leaves and comes back",
		"one-way cut", "primary cut off as it asks for a view", "leadership transferred",
	}, func(m *mix, r *rand.Rand) {
		m.acks = [...]string{"majority", "majority", "first", "all"}[r.IntN(4)]
		m.think = (5 << r.IntN(3)) * ms
		m.nodes = max(m.nodes, 4)
	}},
	// Disks are put back that are older than the node.
	{"old disks", []string{"disk copied", "old disk", "old journal", "whole cluster started with an old disk", "process killed", "rolling restart"},
		func(m *mix, r *rand.Rand) {
			m.think = (5 << r.IntN(4)) * ms
			m.giveUp = time.Duration(2+r.IntN(3)) * time.Second
		}},
	{"members", []string{"node added", "node removed", "node replaced", "disk lost", "voters changed", "copies changed"}, nil},
	{"bad disks", []string{"disk full", "fsync failed", "machine crashed", "process killed at its next write", "all machines crashed"}, nil},
	// Sessions are closed, taken over and cut off, and what they ask comes late, in another order or not at all.
	{"sessions", []string{
		"two clients with one session", "session client killed", "session client stands still", "client's connection cut", "client's connection reset",
		"client cut off from all servers", "primary killed", "holder hears no events",
	}, func(m *mix, r *rand.Rand) {
		m.crowd(r)
		m.tools, m.force = 3, 1
		if r.IntN(2) == 0 { // or few, who have many locks of one bucket
			m.names, m.buckets, m.clients, m.brief, m.silent, m.tools = len(lockNames), 1, 3, 0.2, 0.75, 1
		}
		m.replies = 0.02 + r.Float64()*0.2
		m.late = r.Float64() * 0.05
	}},
}

// crowd has few locks, which are wanted much and kept for long.
func (m *mix) crowd(r *rand.Rand) {
	m.names = 2 + r.IntN(3)
	m.keep = (3 + r.Int64N(12)) * second
	m.brief = r.Float64()
	m.think = (5 << r.IntN(5)) * ms
	m.clients = max(m.clients, 5)
}

// drawFaults draws the kinds of fault: each by itself, or a theme, that one if it is named.
func (m *mix) drawFaults(r *rand.Rand, named string) {
	var about *theme
	if i := slices.IndexFunc(themes, func(t theme) bool { return t.name == named }); i >= 0 {
		about = &themes[i]
	} else if r.IntN(5) < 3 {
		about = &themes[r.IntN(len(themes))]
	}
	if about != nil {
		m.theme = about.name
		m.loss, m.late, m.jitter = 0, 0, 0
		if about.set != nil {
			about.set(m, r)
		}
	}
	for _, k := range allKinds() {
		drawn := r.IntN(4) == 0
		if about != nil {
			drawn = slices.Contains(about.kinds, k.name)
		}
		if drawn {
			m.faults = append(m.faults, k)
		}
	}
}
