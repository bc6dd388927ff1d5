package replicated

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/opencluster/oclocks/subjects"
)

// What was answered stays, is answered the same again, and no token comes twice: over crashes of any node, restarts from
// its journal, compaction, loss, repetition and reordering of messages, takeovers and hand-overs.
func TestNothingAnsweredIsLost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t, 3)
		all := func(*host) bool { return true }
		count := 0
		w.pass(0, all)
		t.Repeat(map[string]func(*rapid.T){
			"acquire": func(t *rapid.T) {
				count++
				wait := time.Duration(rapid.IntRange(0, 1).Draw(t, "wait")) * time.Hour
				w.acquire(fmt.Sprint("a", count), rapid.SampledFrom([]string{"n", "m"}).Draw(t, "name"), wait)
			},
			"release": func(t *rapid.T) {
				i := slices.IndexFunc(w.order, func(id string) bool {
					return w.asked[id].grant != nil && w.asked["r"+id] == nil
				})
				if i >= 0 {
					w.release("r"+w.order[i], w.asked[w.order[i]])
				}
			},
			"again": func(t *rapid.T) {
				if len(w.order) > 0 {
					w.send(w.asked[rapid.SampledFrom(w.order).Draw(t, "request")])
				}
			},
			"round": func(t *rapid.T) { w.round(w.any(t)) },
			"run": func(t *rapid.T) {
				for range rapid.IntRange(1, 30).Draw(t, "steps") {
					w.pass(5*ms, all)
					for _, h := range w.nodes {
						w.round(h)
					}
					for len(w.net) > 0 {
						w.deliver(0)
					}
				}
			},
			"deliver": func(t *rapid.T) {
				if len(w.net) > 0 {
					w.deliver(rapid.IntRange(0, len(w.net)-1).Draw(t, "which"))
				}
			},
			"repeat": func(t *rapid.T) {
				if len(w.net) > 0 && len(w.net) < 100 {
					w.net = append(w.net, rapid.SampledFrom(w.net).Draw(t, "which"))
				}
			},
			"lose": func(t *rapid.T) { w.net = nil },
			"time": func(t *rapid.T) {
				w.pass(int64(rapid.IntRange(1, 900).Draw(t, "ms"))*ms, func(h *host) bool { return rapid.Bool().Draw(t, "lease") })
			},
			"crash": func(t *rapid.T) { w.any(t).b = nil },
			"tear": func(t *rapid.T) {
				if h := w.any(t); h.b != nil {
					w.tear(h, rapid.IntRange(0, 3).Draw(t, "records"))
				}
			},
			"start": func(t *rapid.T) {
				if h := w.any(t); h.b == nil {
					w.start(h)
				}
			},
			"takeover": func(t *rapid.T) { w.takeover() },
			"seal": func(t *rapid.T) { // the leader takes the primary for gone, and is wrong
				if w.primary() != nil {
					w.replace(w.any(t))
				}
			},
			"same": func(t *rapid.T) {
				next := w.view.Clone()
				next.Epoch++
				w.commit(next)
			},
			"handover": func(t *rapid.T) {
				if p := w.primary(); p != nil && len(w.view.Chain) > 1 {
					_ = p.Chain().HandOver(w.view.Chain[1]) // it may not be able to just now
				}
			},
			"image": func(t *rapid.T) {
				if h := w.any(t); h.b != nil {
					h.b.Image(w.now, "image")
				}
			},
		})
		w.heal()
		w.check()
		for _, id := range w.order {
			if a := w.asked[id]; a.told == "" && a.req.Op == subjects.OpRelease {
				t.Fatalf("the release %s is never answered", id)
			}
		}
	})
}

func (w *world) any(t *rapid.T) *host {
	return w.nodes[rapid.IntRange(0, len(w.nodes)-1).Draw(t, "node")]
}
