package sim

import (
	"bytes"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/bucket/replicated"
	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/internal/check"
	"github.com/opencluster/oclocks/subjects"
)

// checker sees what no client can: what was committed, who answers, what the copies have. What clients were promised is known to
// internal/check, which it feeds.
type checker struct {
	w        *world
	history  *check.Checker
	reported int // violations of the history that were told

	state    *shared.State // the newest that anybody has applied
	commands map[uint64][]byte
	lossy    map[uint32]int // recoveries of a bucket: what was answered before may be lost

	tokens  map[tokenID]string // the request that it was given to
	answers map[uint32]answering
	told    map[uint32]bool // of which somebody has heard something, so that all of its in-sync set have what it began with
	lines   []lineage       // by bucket
}

// tokenID is a token of a zone in a bucket.
type tokenID struct {
	zone  string
	place uint64
}

// answering is which node answers for a bucket.
type answering struct {
	epoch uint64
	node  uint64
	gen   int
}

func newChecker(w *world) checker {
	return checker{
		w: w, commands: map[uint64][]byte{}, lossy: map[uint32]int{}, tokens: map[tokenID]string{},
		answers: map[uint32]answering{}, told: map[uint32]bool{}, history: check.New(check.Options{Wild: w.mix.wild, MaxLease: w.mix.maxLease}),
	}
}

// applied compares the logs of all nodes: at each change the same command.
func (k *checker) applied(m *machine, change uint64, command []byte, before, after *shared.State) {
	if known, ok := k.commands[change]; ok {
		if !bytes.Equal(known, command) {
			k.w.fail("change %d is %s at %v, and was %s elsewhere", change, command, m, known)
		}
		return
	}
	k.commands[change] = bytes.Clone(command)
	k.w.print.number(xxhash.Sum64(command))
	k.state = after
	k.w.stats.Changes++
	if !bytes.Contains(command, []byte(`"op":"views"`)) {
		k.w.tell("change %d: %.200s", change, command)
	}
	for b := len(before.Views); b < len(after.Views) && len(before.Views) > 0; b++ {
		k.lossy[uint32(b)] = k.lossy[uint32(b-len(before.Views))]
		k.answers[uint32(b)], k.told[uint32(b)] = answering{}, false
		k.halved(uint32(b))
	}
	for b := range after.Views {
		var old chain.View
		if b < len(before.Views) {
			old = before.Views[b]
		}
		v := after.Views[b]
		if v.Epoch == old.Epoch {
			if !sameView(&v, &old) {
				k.w.fail("change %d: bucket %d: epoch %d has a second view %v, and had %v", change, b, v.Epoch, v, old)
			}
			continue
		}
		k.w.tell("change %d: bucket %d: %v", change, b, v)
		k.w.stats.Views++
		if v.Recovery && (!old.Recovery || old.Primary() != v.Primary()) {
			k.w.stats.Recoveries++
			k.doubt(uint32(b), after.Buckets())
			k.recovered(uint32(b), v.Epoch)
			for half := uint32(b) + 1; half < after.Buckets(); half++ {
				if k.hangsOn(half, uint32(b)) {
					k.doubt(half, after.Buckets())
					k.hangs(half)
				}
			}
		}
		k.counted(uint32(b), &v, after)
	}
}

// hangsOn says whether a bucket was split off another one, and nobody has heard anything of it yet: it may begin with what that one has
// later. A primary that would answer does not count: until something of it is confirmed, a copy of the in-sync set may have nothing.
func (k *checker) hangsOn(half, b uint32) bool {
	for half > b && !k.told[half] {
		half = replicated.ParentOf(half)
	}
	return half == b
}

func (k *checker) processEnded(*process) {}

func sameView(a, b *chain.View) bool {
	return slices.Equal(a.Chain, b.Chain) && a.InSync == b.InSync && a.Recovery == b.Recovery
}

// round looks at one round of a copy; released is what all copies of its batch release. Who releases something answers, if it is more than "ask again"; and who would take a request
// now would answer the next one.
func (k *checker) round(p *process, c *cell, released []replicated.Effect) {
	does, b := "answers", c.Number()
	k.confirmed(p, c, c.Turned() == replicated.Taken)
	if c.Turned() == replicated.Taken && c.Table().Buckets() < p.count {
		k.note(&check.Event{At: k.w.now, Kind: check.Withheld, Bucket: b, Buckets: c.Table().Buckets()})
	}
	if !slices.ContainsFunc(released, func(e replicated.Effect) bool {
		refusal, refused := e.Body.(*subjects.Refusal)
		return e.Bucket == b && (!refused || refusal.Code != 503)
	}) {
		if does = "may answer"; c.Turned() != replicated.Taken {
			return
		}
	} else {
		k.told[b] = true
	}
	now := answering{c.Chain().Epoch(), p.number, p.m.gen}
	was := k.answers[b]
	switch {
	case now.epoch > was.epoch || was.epoch == 0:
		k.answers[b] = now
	case now.epoch == was.epoch && (now.node != was.node || now.gen != was.gen):
		k.w.fail("bucket %d: node %d (process %d) %s in epoch %d, as node %d (process %d) did", b, now.node, now.gen, does, now.epoch, was.node, was.gen)
	case now.epoch < was.epoch && !k.w.mix.wild:
		k.w.fail("bucket %d: node %d %s in epoch %d, node %d has answered in epoch %d", b, now.node, does, now.epoch, was.node, was.epoch)
	}
}

func (k *checker) alert(p *process, b uint32, text string) {
	k.w.stats.Alerts++
	k.w.tell("ALERT of %v about bucket %d: %s", p.m, b, text)
	if strings.Contains(text, "apply change") || strings.Contains(text, "the table's") || strings.Contains(text, "take over the state") {
		k.w.fail("%v: the table of bucket %d does not take what the chain has: %s", p.m, b, text)
	}
	if k.w.mix.damage == 0 && k.lossy[b] == 0 && !strings.Contains(text, "cannot take over") {
		k.w.fail("%v alerts about bucket %d, and nothing was damaged: %s", p.m, b, text)
	}
}

// granted looks at a grant that is told for the first time: a bucket gives each token of a zone once, whatever the lock.
func (k *checker) granted(zone, id string, g *subjects.Grant) {
	place := tokenID{zone, uint64(g.Bucket)<<53 | g.Token}
	if other, used := k.tokens[place]; used {
		k.w.fail("token %d of bucket %d is given to %s and to %s", g.Token, g.Bucket, other, id)
	}
	k.tokens[place] = id
}
