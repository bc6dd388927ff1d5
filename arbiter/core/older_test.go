package core

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// TestAStoreOlderThanWhatItConfirmed: a store is put back from a copy and nobody tells its node so before it hears from the leader. It
// stops, with an error that says what to do.
func TestAStoreOlderThanWhatItConfirmed(t *testing.T) {
	w, l, x, _ := trio(t)
	old := x.disk
	old.Entries = slices.Clone(old.Entries)
	if err := w.propose(l, "confirmed by x", Condition{}); err != nil {
		t.Fatal(err)
	}
	w.must(t, "x to have it", func() bool {
		return slices.ContainsFunc(x.fsm.Log, func(e entry) bool { return e.Text == "confirmed by x" })
	})
	w.crash(x)
	x.disk = old
	w.start(x)
	node := x.node
	if w.until(second, func() bool { return node.Err() != nil }); !errors.Is(node.Err(), ErrFailed) {
		t.Fatalf("x goes on: %v", w.wrong)
	}
	if !strings.Contains(node.Err().Error(), "the disk is older than the node. Start it again") {
		t.Fatal(node.Err())
	}
}
