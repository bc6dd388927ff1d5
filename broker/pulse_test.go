package broker

import (
	"fmt"
	"testing"
)

// A shard stands still that is in one batch for long, and not one that begins others, or is idle, however often it is looked at.
func TestPulse(t *testing.T) {
	shards := []*shard{{}, {}, {}}
	p := newPulse(len(shards))
	var got []int
	look := func() { got = append(got, p.look(shards, true)) }
	shards[1].inBatch.Store(7)
	for i := range stillPulses + 1 {
		shards[2].inBatch.Store(uint64(i + 1))
		if look(); i < stillPulses && got[i] != -1 {
			t.Fatalf("after %d looks: %v", i+1, got)
		}
	}
	shards[1].inBatch.Store(8)
	look()
	shards[1].inBatch.Store(0)
	look()
	if want := "[1 -1 -1]"; fmt.Sprint(got[stillPulses:]) != want {
		t.Errorf("%v, not %s", got[stillPulses:], want)
	}
	shards[1].inBatch.Store(9)
	shards[2].inBatch.Store(0)
	for i := range lapsedPulses + 1 {
		if still := p.look(shards, false); (still == 1) != (i == lapsedPulses) {
			t.Errorf("without a lease, after %d looks: %d", i+1, still)
		}
	}
	if still := p.look(shards, true); still != 1 {
		t.Errorf("its batch is the same, and with a lease that came late it gets on: %d", still)
	}
	shards[1].inBatch.Store(10)
	for range stillPulses {
		if still := p.look(shards, true); still != -1 {
			t.Fatalf("a shard that has begun another batch stands still: %d", still)
		}
	}
}
