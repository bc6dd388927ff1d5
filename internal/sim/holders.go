package sim

import (
	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

// holders are the tokens of a lock's holders, as a table has them.
func (w *world) holders(t *bucket.Table, zone, name string) map[uint64]bool {
	tokens := map[uint64]bool{}
	recs, _, _ := t.List(zone, &subjects.Request{Op: subjects.OpList, Limit: 1000}, bucket.Now{})
	for i := range recs {
		if recs[i].Name != name {
			continue
		}
		for _, h := range recs[i].Holders {
			tokens[h.Token] = true
		}
	}
	return tokens
}
