package edge

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestBucketSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const buckets = 200
		draw := func(label string) (BucketSet, map[uint32]bool) {
			set, model := NewBucketSet(buckets), map[uint32]bool{}
			for _, number := range rapid.SliceOf(rapid.Uint32Range(0, buckets-1)).Draw(t, label) {
				set.Add(number)
				model[number] = true
			}
			return set, model
		}
		a, inA := draw("a")
		b, inB := draw("b")
		if a.Count() != len(inA) {
			t.Fatalf("%d of %d", a.Count(), len(inA))
		}
		back, err := ReadBucketSet(a.Text())
		if err != nil || !slices.Equal(back, a) {
			t.Fatalf("%v read back as %v: %v", a, back, err)
		}
		within := true
		for number := range inB {
			within = within && inA[number]
		}
		if b.Within(a) != within {
			t.Fatalf("%v within %v: %v", inB, inA, !within)
		}
		if within {
			a.Remove(b)
		}
		for number := range uint32(buckets + 64) {
			if want := inA[number] && !(within && inB[number]); a.Has(number) != want {
				t.Fatalf("bucket %d: %v", number, !want)
			}
		}
	})
	for _, text := range []string{"x", "AA", "AAAAAAAAAAA!"} {
		if _, err := ReadBucketSet(text); err == nil {
			t.Errorf("%q is a set", text)
		}
	}
}
