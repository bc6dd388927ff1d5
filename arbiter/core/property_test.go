package core

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// TestNothingForbiddenHappens drives a group through faults of all kinds, with clocks that run apart, and checks after every
// turn what must never be (world.check, world.compare): two that act at once, a lease believed in after the leader counts it as
// ended, a committed command lost, changed or applied twice, a read that is too old. In the end everything heals, and
// everybody must have everything that was acknowledged.
func TestNothingForbiddenHappens(t *testing.T) { rapid.Check(t, chaos) }

func chaos(t *rapid.T) {
	cfg := testConfig()
	w := newWorld(rapid.Uint64().Draw(t, "seed"), cfg, 5)
	for _, m := range w.machines[1:] {
		m.offset = rapid.Int64Range(0, 1000*second).Draw(t, "offset")
	}
	for _, m := range w.machines {
		m.rate = rapid.Float64Range(0.95, 1.05).Draw(t, "rate")
		// A machine that is the one and gets another clock has another time: start it anew.
		w.crash(m)
		w.start(m)
	}
	voters := rapid.IntRange(1, 4).Draw(t, "voters")
	w.grow(voters, 5-voters)
	w.loss = rapid.SampledFrom([]float64{0, 0.02, 0.2}).Draw(t, "loss")
	w.twice = rapid.SampledFrom([]float64{0, 0.1}).Draw(t, "twice")
	w.delay[1] = w.delay[0] + rapid.SampledFrom([]int64{0, 5 * ms, 60 * ms, 400 * ms}).Draw(t, "jitter")
	texts := 0
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		chaosStep(t, w, &texts)
		w.run(rapid.Int64Range(0, 300).Draw(t, "ms") * ms)
		if len(w.wrong) > 0 {
			t.Fatal(w.wrong[0])
		}
	}
	heal(w)
	if !w.until(60*second, func() bool { return settled(w) }) {
		for _, m := range w.machines {
			t.Logf("%d: %+v", m.id, m.node.Status())
		}
		t.Fatalf("did not settle; %v", w.wrong)
	}
	checkEnd(t, w)
}

func chaosStep(t *rapid.T, w *world, texts *int) {
	m := w.machines[rapid.IntRange(0, len(w.machines)-1).Draw(t, "machine")]
	other := w.machines[rapid.IntRange(0, len(w.machines)-1).Draw(t, "other")]
	switch rapid.SampledFrom([]string{
		"propose", "propose", "propose", "take", "take", "take", "read", "cut", "cut", "join", "crash", "tear", "start", "start",
		"pause", "resume", "gone", "transfer", "member", "priority", "isolate",
	}).Draw(t, "do") {
	case "propose":
		*texts++
		_ = w.propose(m, fmt.Sprint("text ", *texts), Condition{})
	case "take":
		for _, l := range w.machines { // whoever thinks that it leads, the old one too
			if l.node != nil && !l.paused && l.node.Leading() {
				_ = w.take(l, other.id)
			}
		}
	case "read":
		w.read(m)
	case "cut":
		w.setCut(m.id, other.id, true)
	case "isolate":
		if l := w.leader(); l != nil {
			for _, o := range w.machines {
				w.setCut(l.id, o.id, true)
			}
		}
	case "join":
		clear(w.cut)
	case "crash":
		w.crash(m)
	case "tear":
		m.tear = true
	case "start":
		if m.node == nil {
			w.start(m)
		}
	case "pause":
		m.paused = true
	case "resume":
		m.paused = false
	case "gone":
		for _, o := range w.machines {
			if o != m {
				o.gone = append(o.gone, m.id)
			}
		}
	case "transfer":
		if m.node != nil && !m.paused {
			_ = m.node.Transfer(other.id)
			w.carryOut(m)
		}
	case "member":
		step := rapid.SampledFrom([]Step{AddLearner, Promote, Remove}).Draw(t, "step")
		if step == Remove && w.rnd.IntN(2) == 0 {
			step = Promote
		}
		if l := w.leader(); l != nil && (step != Remove || len(l.node.conf.Voters) > 1) {
			_ = w.member(l, step, other.id)
		}
	case "priority":
		for _, o := range w.machines {
			if o.node != nil {
				o.node.SetPriorities(map[uint64]int{m.id: 1, other.id: 15})
			}
		}
	}
}

// heal ends all faults. Members that were removed stay away.
func heal(w *world) {
	clear(w.cut)
	w.loss, w.twice, w.delay[1] = 0, 0, w.delay[0]
	for _, m := range w.machines {
		m.paused, m.tear = false, false
		w.connected(m)
		if m.node == nil {
			w.start(m)
		}
	}
}

// settled: there is a leader, and its members have applied everything and hold leases.
func settled(w *world) bool {
	l := w.leader()
	if l == nil {
		return false
	}
	for _, m := range w.machines {
		if !l.node.isMember(m.id) {
			continue
		}
		waits := 0
		for _, text := range m.texts {
			if len(text) > 0 && text[0] == 't' {
				waits++
			}
		}
		if m.node == nil || m.node.applied != l.node.applied || !w.believes(m) || waits > 0 {
			return false
		}
	}
	return true
}

func checkEnd(t *rapid.T, w *world) {
	for _, wrong := range w.wrong {
		t.Error(wrong)
	}
	have := map[string]int{}
	for _, e := range w.leader().fsm.Log {
		have[e.Text]++
	}
	for _, text := range w.acked {
		if have[text] != 1 {
			t.Errorf("%q was acknowledged and is there %d times", text, have[text])
		}
	}
}
