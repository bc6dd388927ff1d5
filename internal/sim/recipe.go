package sim

import (
	"slices"
	"time"
)

// Recipe says which run is meant: that of a seed, or that with less in it. Shrinking makes it smaller.
type Recipe struct {
	Seed    uint64
	Without []string      // faults that do not happen: kinds, or what is drawn for the whole run (Knobs)
	Skip    []int         // causes that are left out, by their index
	Nodes   int           // 0: as drawn
	Clients int           // 0: as drawn
	Time    time.Duration // of trouble; 0: as drawn
	Theme   string        // of the faults; "": as drawn
}

func (r *Recipe) without(kind string) bool { return slices.Contains(r.Without, kind) }
func (r *Recipe) skips(index int) bool     { return slices.Contains(r.Skip, index) }

// knob is something that is drawn for a whole run.
type knob struct {
	name string
	off  func(m *mix)
}

var knobs = []knob{
	{"jitter", func(m *mix) { m.jitter = 0 }},
	{"loss", func(m *mix) { m.loss = 0 }},
	{"twice", func(m *mix) { m.twice = 0 }},
	{"late", func(m *mix) { m.late = 0 }},
	{"delay", func(m *mix) { m.delay = 2 * ms }},
	{"reorder", func(m *mix) { m.reorder = false }},
	{"replies", func(m *mix) { m.replies = 0 }},
	{"repeats", func(m *mix) { m.repeats = 0 }},
	{"flip", func(m *mix) { m.flip = 0 }},
	{"frames", func(m *mix) { m.frames = 0 }},
	{"newer", func(m *mix) { m.newer = 0 }},
	{"damage", func(m *mix) { m.damage = 0 }},
	{"skew", func(m *mix) { m.skewed = m.wild }},
	{"bursts", func(m *mix) { m.bursts = false }},
}

// restrict takes out of a mix what the recipe does without.
func (r *Recipe) restrict(m *mix) {
	for _, k := range knobs {
		if r.without(k.name) {
			k.off(m)
		}
	}
	if r.Nodes > 0 {
		m.nodes = min(r.Nodes, m.nodes)
	}
	if r.Clients > 0 {
		m.clients = min(r.Clients, m.clients)
	}
	if r.Time > 0 {
		m.time = min(int64(r.Time), m.time)
	}
}
