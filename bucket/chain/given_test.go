package chain

import (
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// A change that goes alone along a chain of three is a part of a block in each copy's log, and nothing else is made for it. (That blocks begin and the
// logs themselves grow and shrink is less than one for each change.)
func TestAllocationsOfAChange(t *testing.T) {
	p := newPipe(t)
	data := make([]byte, 200)
	got := testing.AllocsPerRun(2000, func() {
		p.propose(t, data, 1)
		for seq := p.nodes[0].log.last().Seq; p.confirmed < seq; {
			p.turn(t)
		}
	})
	if got > 0 { // it is cut to a whole number
		t.Errorf("%v allocations for a change on three copies, and many share one", got)
	}
}

// What a message had before has no part in what is decoded into it.
func TestAMessageIsUsedAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		used := drawMessage(t)
		for range 3 {
			raw := drawMessage(t)
			want, err := Decode(raw.Encode(nil))
			if err != nil {
				t.Fatal(err)
			}
			if err := used.Decode(raw.Encode(nil)); err != nil {
				t.Fatal(err)
			}
			if used.String() != want.String() || !reflect.DeepEqual(used.Encode(nil), want.Encode(nil)) {
				t.Fatalf("%v was decoded as %v", &want, &used)
			}
			if err := used.Decode([]byte("no message at all")); err == nil || len(used.Changes)+len(used.Progress) > 0 {
				t.Fatalf("%v is left of what is no message (%v)", &used, err)
			}
		}
	})
}
