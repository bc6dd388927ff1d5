package check_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/opencluster/oclocks/internal/check"
)

// TestCorrectServiceNeverViolates feeds histories of a service that is correct because it is simple.
func TestCorrectServiceNeverViolates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seed := rapid.Uint64().Draw(t, "seed")
		k := check.New(check.Options{Window: []int{0, 10, 60}[seed%3], Keep: []time.Duration{0, 3 * time.Second}[seed%2]})
		history := newNaive(seed).run(10 * time.Second)
		for i := range history {
			k.Add(&history[i])
		}
		k.End(0, false)
		if s := k.Stats(); s.Grants < 20 || s.Ordered < 40 || s.Beliefs < 20 || s.Undecided > 0 {
			t.Fatalf("%d events, but only %+v", len(history), s)
		}
		for _, v := range k.Violations() {
			t.Fatalf("%v\n%s", v, story(history, v.Name, 1000))
		}
	})
}
