package replicated

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/opencluster/oclocks/bucket"
)

// Whichever history a promotion goes on from, and whatever of others was lost, confirmed or not, no term is used again that tokens
// were given with, as long as no counter is full more than twice in one epoch.
func TestNoTermComesTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		histories := []bucket.Term{{}} // each with the promotion that it ends with, and the term that it had at its end
		epoch, used := uint64(0), uint32(0)
		for range rapid.IntRange(1, 60).Draw(t, "promotions") {
			epoch += rapid.Uint64Range(1, 3).Draw(t, "views")
			from := rapid.IntRange(0, len(histories)-1).Draw(t, "goes on from")
			next := nextTerm(histories[from], epoch)
			if next.Term <= used {
				t.Fatalf("epoch %d goes on from %+v: term %d, and %d was used", epoch, histories[from], next.Term, used)
			}
			histories = append(histories, next) // some copy has no more than the promotion
			next.Term += rapid.Uint32Range(0, spare).Draw(t, "full counters")
			used = next.Term
			histories = append(histories, next)
		}
	})
}
