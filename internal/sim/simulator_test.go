package sim

import (
	"bytes"
	"context"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/internal/journal"
)

func TestClassOfAViolation(t *testing.T) {
	for _, same := range [][2]string{
		{"    4.4 z1.u0.1 is listed \"x2\" after \"x2\"", "   14.9 z1.u1.2 is listed \"m1\" after \"m1\""},
		{"  132.0 the cluster does not come together: bucket 3: e38 [1.1 4.2]\nm0 is down", "  13.5 the cluster does not come together: bucket 0: e8 [1.1]"},
	} {
		if a, b := Class(same[0]), Class(same[1]); a != b {
			t.Errorf("%q and %q are two classes", a, b)
		}
	}
	if a, b := Class("1.0 c1 believes in x0"), Class("1.0 c1 is granted x0 twice"); a == b {
		t.Errorf("two violations are of one class, %q", a)
	}
}

// TestKindsHaveNames: a kind is left out by its name, and counted by it.
func TestKindsHaveNames(t *testing.T) {
	known := map[string]bool{}
	for _, k := range allKinds() {
		if k.name == "" || known[k.name] {
			t.Errorf("two kinds of fault are called %q", k.name)
		}
		known[k.name] = true
	}
	for _, theme := range themes {
		for _, name := range theme.kinds {
			if !known[name] {
				t.Errorf("theme %q has %q, which is no kind of fault", theme.name, name)
			}
		}
	}
}

// TestRecipeTakesFaultsAway: what a recipe does without does not happen, and an empty one changes nothing.
func TestRecipeTakesFaultsAway(t *testing.T) {
	var all []string
	for _, k := range allKinds() {
		all = append(all, k.name)
	}
	for _, k := range knobs {
		all = append(all, k.name)
	}
	w := Recipe{Seed: 4, Without: all, Clients: 2, Nodes: 3, Time: 8 * time.Second}.run(false)
	if len(w.wrong) > 0 || len(w.caused) > 0 || w.mix.clients > 2 || len(w.machines) != 3 {
		t.Fatalf("%v, %d faults, %v", w.wrong, len(w.caused), w.mix)
	}
	full := Recipe{Seed: 4}.run(false)
	if len(full.caused) == 0 {
		t.Fatal("nothing goes wrong in seed 4")
	}
	skip := full.caused[0].Index
	less := Recipe{Seed: 4, Skip: []int{skip}}.run(false)
	if slices.ContainsFunc(less.caused, func(c cause) bool { return c.Index == skip }) {
		t.Fatalf("fault %d was to be skipped", skip)
	}
}

// TestTellingChangesNothing: a run that is told is the run that failed.
func TestTellingChangesNothing(t *testing.T) {
	a, b := Recipe{Seed: 9, Time: 8 * time.Second}.run(false), Recipe{Seed: 9, Time: 8 * time.Second}.run(true)
	if a.order != b.order || a.stats.Events != b.stats.Events || a.now != b.now {
		t.Fatalf("%d events until %d, told %d until %d", a.stats.Events, a.now, b.stats.Events, b.now)
	}
	if len(b.story.all()) == 0 || len(a.story.all()) > 0 {
		t.Fatal("the story is told when it is not wanted, or not when it is")
	}
}

func TestCampaignAndLedger(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.jsonl")
	var said bytes.Buffer
	for range 2 {
		l := Campaign{Start: 7, Seeds: 2, Jobs: 2, Out: &said}.Run(context.Background())
		if l.Seeds != 2 || l.Operations == 0 || l.Simulated == 0 || len(l.Faults) == 0 {
			t.Fatalf("%+v", l)
		}
		if err := l.Append(path); err != nil {
			t.Fatal(err)
		}
	}
	sum, n, err := ReadLedgers(path)
	if err != nil || n != 2 || sum.Seeds != 4 {
		t.Fatalf("%d ledgers, %+v, %v", n, sum, err)
	}
}

func TestStoryTellsWhatMatters(t *testing.T) {
	s := story{lines: []line{{1, "c1 is granted x1 token 5"}, {2, "c2 is granted x2 token 6"}, {3, "m0 dies: killed"}}}
	text := strings.Join(s.about([]string{"c1 believes in x1"}, 10), "\n")
	if !strings.Contains(text, "x1") || strings.Contains(text, "x2") || !strings.Contains(text, "m0 dies") {
		t.Fatal(text)
	}
}

// TestAgenda: events come in the order of their times, and of their planning; an actor's turn can be brought forward.
func TestAgenda(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a agenda
		actors := make([]*actor, 3)
		for i := range actors {
			actors[i] = &actor{at: never}
		}
		model := map[uint64]int64{}
		for order := uint64(1); order <= 60; order++ {
			at := rapid.Int64Range(0, 20).Draw(t, "at")
			e := event{at: at, order: order}
			if i := rapid.IntRange(0, 5).Draw(t, "actor"); i < len(actors) {
				x := actors[i]
				if at >= x.at {
					continue
				}
				e.turn = x
				if x.at != never {
					delete(model, uint64(x.second)) // its order, kept where nothing else uses it
					a.rise(x.place, e)
				} else {
					a.push(e)
				}
				x.at, x.second = at, int64(order)
			} else {
				a.push(e)
			}
			model[order] = at
			if rapid.IntRange(0, 3).Draw(t, "pop") == 0 {
				got := a.pop()
				for order, at := range model { // order: each against the first
					if at < got.at || at == got.at && order < got.order {
						t.Fatalf("%d at %d came before %d at %d", got.order, got.at, order, at)
					}
				}
				delete(model, got.order)
				if x, ok := got.turn.(*actor); ok {
					x.at = never
				}
			}
		}
		if len(a.list) != len(model) {
			t.Fatalf("%d events are left, %d should be", len(a.list), len(model))
		}
	})
}

// TestDiskKeepsWhatWasSynced: after a crash of the machine the journal that ships opens, says that it is unclean if something may be
// missing, and has at least what was synced.
func TestDiskKeepsWhatWasSynced(t *testing.T) {
	for seed := range uint64(200) {
		w := &world{rnd: rand.New(rand.NewPCG(seed, 1))}
		d := newFiles(w)
		boot := "one"
		opts := journal.Options{FS: d, Driven: true, BootID: func() (string, error) { return boot, nil }}
		j, _, err := journal.Open("journal", opts)
		if err != nil {
			t.Fatal(err)
		}
		synced, written := w.draw(20), 0
		for ; written < synced+w.draw(20); written++ {
			if written == synced {
				j.Turn()
			}
			if err := j.Append([]journal.Record{{Seq: uint64(written + 1), Kind: journal.Change, Payload: make([]byte, w.draw(3000))}}); err != nil {
				t.Fatal(err)
			}
		}
		if written == synced {
			j.Turn()
		}
		d.crash()
		boot = "two"
		_, replay, err := journal.Open("journal", opts)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		n := 0
		if err := replay.Each(func(uint32, uint64, journal.Kind, []byte) error { n++; return nil }); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if n < min(synced, written) || n > written || n < written && !replay.Unclean {
			t.Fatalf("seed %d: %d of %d changes are there, %d were synced, unclean %t", seed, n, written, synced, replay.Unclean)
		}
	}
}

// TestHalvesThatHaveNotBegun: what a bucket loses in a recovery is lost to its halves, too, until somebody was answered for them; that
// somebody would answer is not enough (seed 12000008868 at d5d1ff6).
func TestHalvesThatHaveNotBegun(t *testing.T) {
	k := &checker{answers: map[uint32]answering{5: {epoch: 1031}, 9: {epoch: 2051}}, told: map[uint32]bool{5: true}}
	for _, c := range []struct {
		half, b uint32
		want    bool
	}{{4, 0, true}, {5, 1, false}, {9, 1, true}, {13, 1, false}, {13, 5, true}, {9, 5, false}, {12, 0, true}, {6, 1, false}} {
		if got := k.hangsOn(c.half, c.b); got != c.want {
			t.Errorf("bucket %d hangs on %d: %t", c.half, c.b, got)
		}
	}
}

// TestAYoungClusterKeepsItsDisks: while one node votes no disk is lost, since the second voter may be on its way, and none is copied to
// be there first later, since it would decide alone. With three voters both may be.
func TestAYoungClusterKeepsItsDisks(t *testing.T) {
	recipe := Recipe{Seed: 4, Nodes: 3}
	for _, k := range knobs {
		recipe.Without = append(recipe.Without, k.name)
	}
	w := newWorld(recipe)
	stopped := func() bool {
		for range 30 { // the machine is drawn
			w.startWithOldDisk()
		}
		return slices.ContainsFunc(w.machines, func(m *machine) bool { return m.p == nil })
	}
	spared := func() bool { return slices.ContainsFunc(w.machines, w.spare) }
	voters := func() int {
		if p := w.leader(); p != nil {
			return len(p.arb.node.Status().Voters)
		}
		return 0
	}
	tried := 0
	for ; voters() < 2; w.run(w.now + ms) {
		if w.now > 5*second {
			t.Fatal("there is no second voter")
		}
		if state := w.committed(); voters() == 1 && state != nil && len(state.Nodes) == 3 {
			tried++
			if spared() || stopped() {
				t.Fatal("with one voter of three nodes a disk is taken")
			}
		}
	}
	w.run(w.now + 2*second)
	if tried == 0 || voters() != 3 || len(w.wrong) > 0 {
		t.Fatalf("tried %d times, %d voters, %v", tried, voters(), w.wrong)
	}
	if !spared() || !stopped() {
		t.Fatal("with three voters no disk is taken")
	}
}

// TestAnArbiterThatSendsForEver: a storm of messages of Raft ends a run, since it has few turns and takes for ever.
func TestAnArbiterThatSendsForEver(t *testing.T) {
	w := newWorld(Recipe{Seed: 1})
	a := &arb{p: &process{w: w, m: w.machines[0]}}
	frame := core.Message{Frame: make([]byte, 1<<20)}
	for range maxSent >> 20 {
		a.Send(frame)
	}
	if len(w.wrong) > 0 {
		t.Fatalf("%d bytes in a second are too many: %s", maxSent, w.wrong[0])
	}
	w.now += second + 1
	a.Send(frame)
	if len(w.wrong) > 0 {
		t.Fatalf("the next second counts with the last one: %s", w.wrong[0])
	}
	for range maxSent >> 20 {
		a.Send(frame)
	}
	if len(w.wrong) == 0 {
		t.Fatal("it may go on for ever")
	}
}
