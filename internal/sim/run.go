package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opencluster/oclocks/conf/shared"
)

// Stats counts what has happened in a run.
type Stats struct {
	Seeds, Events, Messages, Batches, Requests, Asks, Answers, Changes, Views int
	Recoveries, Reigns, OldDisks, Duplicates, Dropped, Alerts, Zombies        int
	Grants, Time                                                              int64 // Time: simulated nanoseconds
	Faults                                                                    map[string]int
	Ops                                                                       map[string]int // what clients asked and saw
}

// Add adds those of another run.
func (s *Stats) Add(o *Stats) {
	s.Seeds += o.Seeds
	s.Events += o.Events
	s.Messages += o.Messages
	s.Batches += o.Batches
	s.Requests += o.Requests
	s.Asks += o.Asks
	s.Answers += o.Answers
	s.Changes += o.Changes
	s.Views += o.Views
	s.Recoveries += o.Recoveries
	s.Reigns += o.Reigns
	s.OldDisks += o.OldDisks
	s.Duplicates += o.Duplicates
	s.Dropped += o.Dropped
	s.Alerts += o.Alerts
	s.Zombies += o.Zombies
	s.Grants += o.Grants
	s.Time += o.Time
	addUp(&s.Faults, o.Faults)
	addUp(&s.Ops, o.Ops)
}

// addUp adds counters by name to others, which may be nil yet.
func addUp(sum *map[string]int, more map[string]int) {
	if *sum == nil {
		*sum = map[string]int{}
	}
	for name, n := range more { // order: added up
		(*sum)[name] += n
	}
}

// Result is what came of a run.
type Result struct {
	Seed  uint64
	Mix   string
	Wrong []string // violations; none: all promises were kept
	Story []string // what happened last, if something was wrong
	Stats Stats

	Fingerprint uint64 // of all that happened: equal, if the run was the same
}

// settleTime is how long a healed cluster may take to come together.
const settleTime = 90 * second

// Run simulates the cluster of a seed. storyLines is how many of the last events are told if something goes wrong.
func Run(seed uint64, storyLines int) Result { return Recipe{Seed: seed}.Run(storyLines) }

// Run simulates the cluster of a recipe.
func (r Recipe) Run(storyLines int) Result {
	w := r.run(false)
	if len(w.wrong) > 0 && storyLines > 0 {
		w = r.run(true) // once more, to tell it
	}
	result := Result{Seed: r.Seed, Mix: w.mix.String(), Wrong: w.wrong, Stats: w.stats, Fingerprint: uint64(w.print)}
	if len(w.wrong) > 0 {
		result.Story = w.story.about(w.wrong, storyLines)
	}
	return result
}

func (r Recipe) run(telling bool) *world {
	w := newWorld(r)
	w.telling = telling
	began := w.began
	w.after(4*second, func() { w.trouble(began + w.mix.time) })
	w.syncDisks()
	w.run(began + w.mix.time)
	w.heal()
	until := w.now + settleTime
	for problem := "?"; problem != "" && len(w.wrong) == 0; {
		w.run(w.now + 500*ms)
		if problem = w.unsettled(); problem != "" && w.now >= until {
			w.fail("the cluster does not come together: %s\n%s", cmp.Or(w.apart(), problem), w.describe())
		}
	}
	if len(w.wrong) == 0 {
		w.lastLook()
	}
	w.stats.Seeds, w.stats.Time = 1, w.now-began
	w.print.number(w.rnd.Uint64())
	w.print.number(uint64(w.now))
	w.stats.Grants = int64(w.check.history.Stats().Grants)
	return w
}

func (m mix) String() string {
	names := make([]string, len(m.faults))
	for i, k := range m.faults {
		names[i] = k.name
	}
	return fmt.Sprintf("theme %q, %d locks, %d nodes, %d clients every %s, %d shards, acks %s, %s of trouble every %s, bursts %t, wild %t skewed %t jitter %s loss %.3f twice %.3f late %.3f delay %s reorder %t replies %.2f repeats %.2f flip %.3f frames %.3f newer %.3f damage %.4f; %s",
		m.theme, m.names, m.nodes, m.clients, span(m.think), m.shards, m.acks, span(m.time), span(m.pause), m.bursts, m.wild, m.skewed, span(m.jitter), m.loss, m.twice, m.late, span(m.delay),
		m.reorder, m.replies, m.repeats, m.flip, m.frames, m.newer, m.damage, strings.Join(names, ", "))
}

func (w *world) syncDisks() {
	for _, m := range w.machines {
		if m.p != nil && m.paused <= w.now {
			m.p.turnJournal()
		}
	}
	w.after(second, w.syncDisks)
}

// unsettled says what has not come together yet. To look at all copies takes long, so that is done last.
func (w *world) unsettled() string {
	if problem := w.waiting(); problem != "" {
		return problem
	}
	return w.apart()
}

// apart says which copies have not come together yet.
func (w *world) apart() string {
	state := w.committed()
	if state == nil || state.Buckets() == 0 {
		return "there is no cluster"
	}
	for _, m := range w.machines {
		if m.p == nil || !m.p.serving {
			return fmt.Sprintf("%v does not serve", m)
		}
	}
	for b := range state.Buckets() {
		view := viewOf(state, b)
		if len(view.Chain) != len(w.machines) || view.Recovery {
			return fmt.Sprintf("bucket %d: %v", b, view)
		}
		var want []byte
		for i, member := range view.Chain {
			m := w.byNumber(member.Node)
			if m == nil {
				return fmt.Sprintf("bucket %d: nobody is %v", b, member)
			}
			c := m.p.shardOf(b).cell(b)
			if c == nil {
				return fmt.Sprintf("bucket %d has not begun on %v", b, m)
			}
			if i == 0 && !m.p.turns[b] {
				return fmt.Sprintf("bucket %d: %v does not act: %s", b, m, c.Chain().Describe())
			}
			image := c.Table().AppendSnapshot(nil)
			if i == 0 {
				want = image
			} else if !bytes.Equal(want, image) {
				return fmt.Sprintf("bucket %d: the copy of %v differs from the primary's", b, m)
			}
		}
	}
	return ""
}

// waiting says who has not been answered yet.
func (w *world) waiting() string {
	for _, c := range w.clients {
		if c.busy > 0 {
			return fmt.Sprintf("%s has %d wishes that are not over", c.name, c.busy)
		}
	}
	for _, c := range w.members {
		if !c.dead && (c.wishes > 0 || !c.m.Idle()) {
			return fmt.Sprintf("%s has %d wishes and %d requests that are not over", c.name, c.wishes, c.m.Calls())
		}
	}
	return ""
}

func (w *world) byNumber(number uint64) *machine {
	for _, m := range w.machines {
		if m.p != nil && m.p.number == number {
			return m
		}
	}
	return nil
}

// describe draws all copies.
func (w *world) describe() string {
	var text strings.Builder
	for _, m := range w.machines {
		if m.p == nil || m.p.arb == nil {
			fmt.Fprintf(&text, "%v is down\n", m)
			continue
		}
		s := m.p.arb.node.Status()
		fmt.Fprintf(&text, "%v node %d life %d raft %x leader %x term %d leading %t change %d voters %x learners %x away %v\n", m, m.p.number, m.p.life,
			m.disk.raft, s.Leader, s.Term, s.Leading, s.Change, s.Voters, s.Learners, m.p.seen.away)
		for _, shard := range m.p.shards {
			for _, c := range shard.cells {
				fmt.Fprintf(&text, "   bucket %d %s\n", c.Number(), c.Chain().Describe())
			}
		}
	}
	if s := w.committed(); s != nil {
		for b, v := range s.Views {
			fmt.Fprintf(&text, "view of bucket %d: %v\n", b, v)
		}
	}
	text.WriteString(w.describeLocks())
	for _, c := range w.members {
		fmt.Fprintf(&text, "%s: %d wishes, %s\n", c.name, c.wishes, c.m.Describe(c.clock()))
	}
	for _, c := range w.clients {
		for _, reply := range slices.Sorted(maps.Keys(c.asks)) {
			if a := c.asks[reply]; !a.answered && !a.gone {
				fmt.Fprintf(&text, "%s waits for %v %s (%s) since %s, %d tries\n", c.name, a.req.Op, a.req.Name, a.id, span(a.sentAt), a.tries)
			}
		}
	}
	return text.String()
}

func (w *world) founding() *shared.Found {
	zones, keys := w.zonesFounded()
	return &shared.Found{
		Cluster: "sim", Buckets: w.mix.buckets, Zones: zones, Keys: keys,
		Settings: map[string]string{"acks": w.mix.acks, "max_lease": w.mix.maxLease.String(), "session_lease": "2s", "give_up": w.mix.giveUp.String(), "voters": "5"},
	}
}
