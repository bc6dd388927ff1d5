package replicated

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/opencluster/oclocks/bucket"
)

// Whatever histories are lost and whichever of them a recovery goes on from, also one recovery in another, no term is used again
// that tokens were given with, as long as no counter is full more than twice in one epoch.
func TestNoTermComesTwice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		histories := []bucket.Term{{}} // each with the promotion that it ends with, and the term that it had at its end
		present, epoch, used := 0, uint64(0), uint32(0)
		for range rapid.IntRange(1, 60).Draw(t, "promotions") {
			epoch += rapid.Uint64Range(1, 3).Draw(t, "views")
			lossy := rapid.Bool().Draw(t, "lossy")
			if lossy {
				present = rapid.IntRange(0, len(histories)-1).Draw(t, "goes on from")
			}
			next := nextTerm(histories[present], epoch, lossy)
			if next.Term <= used {
				t.Fatalf("epoch %d goes on from %+v, lossy %t: term %d, and %d was used", epoch, histories[present], lossy, next.Term, used)
			}
			if lost := rapid.Bool().Draw(t, "a copy ends with the promotion"); lost {
				histories = append(histories, next) // the change of a full counter is not in it
			}
			next.Term += rapid.Uint32Range(0, spare).Draw(t, "full counters")
			used = next.Term
			histories = append(histories, next)
			present = len(histories) - 1
		}
	})
}
