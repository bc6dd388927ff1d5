package replicated

import (
	"fmt"
	"maps"
	"math"
	"math/bits"
	"slices"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/bucket/chain"
)

// # What a member's name stands for
//
// Claim: whoever bears the name of a member (node, incarnation) has everything that was confirmed while that name was in an in-sync set;
// until there is a bearer, nothing is confirmed by that name. package chain keeps it for a copy that goes on under its name; here is
// who may begin under which. A name that views cannot have, or not before its bearer has caught up, is always right: what it
// costs is joining, or a recovery where nobody else has the bucket.
//
//   - Records of this life: the name of the last state. That is written before anything is dropped, so what a torn end leaves under a
//     new name is too much, never too little; halves that it lacks are missing ones.
//   - Records of an earlier life, or of another node: the life's first name. No view has it before its bearer has caught up. A
//     journal that is empty, older than the control store, or was not synced when the machine ended, makes another life (broker/control).
//   - A copy that begins anew: 1 more (chain). A snapshot of more than it has changes no name; but the copy missed the halves that it skips.
//   - A spoiled copy keeps its name, and reports that it failed.
//   - A fork with a half, at once or of a journal's Halves: its bucket's name at the fork. The half's first view is a copy of that
//     bucket's view as of the doubling (shared.Double), so it has this name only if the copy was a member then, and what its
//     history has at the fork is what the half begins with. If it began anew in between, no view has its name. Where that bucket lost the
//     end of its history before it was split, the half begins with what is left: that was waited for (doc.go), and of the half
//     nothing was confirmed by this name.
//   - A fork without: missedInc, which is above all names that the half's views can have inherited, over any number of doublings.
//   - No record, and the bucket was never half of another one: the first name. Who has no record had no view, so a view that names it is
//     the first one, and nothing was ever confirmed by it.
//   - No record of a half: missedInc, or it waits for its half; the first name only if there is no record of any bucket
//     that it may come from either, for then that first view is what its own was made of. [descends, TestBegins]
//
// internal/sim checks the claim itself (bearer.go).

// missedInc is the incarnation of a copy that begins with nothing though its bucket is half of another one. The views name the copy
// that began with that half, which is the member that the other bucket's copy was then, so this one must be another; and that one may
// have missed its own half before. So the upper bits of the counter have how many doublings it took to make the bucket: more than for
// any bucket that it came from. A copy begins anew less than 2^27 times in a life of its node (chain.Replica adds 1).
func missedInc(number uint32, life uint64) uint64 {
	return life<<32 | uint64(bits.Len32(number))<<27
}

// Past is what the journal of a node had, by bucket.
type Past map[uint32]Start

// ReadPast makes the Past of the journal's records, which each gives to take in their order; whole is that of Record. Table is the
// configuration of a bucket's table, for as many buckets as there may be. The errors are those of each, and ErrRecord.
func ReadPast(table func(number uint32) bucket.Config, each func(take func(number uint32, seq uint64, whole bool, payload []byte) error) error) (Past, error) {
	replays := make(map[uint32]*Replay)
	err := each(func(number uint32, seq uint64, whole bool, payload []byte) error {
		r := replays[number]
		if r == nil {
			r = NewReplay(table(number))
			replays[number] = r
		}
		if err := r.Add(seq, whole, payload); err != nil {
			return fmt.Errorf("record %d of bucket %d: %w", seq, number, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	past := make(Past, len(replays))
	for number, r := range replays { // order: each is by itself
		past[number] = r.Start()
	}
	return past, nil
}

// Spoiled tells of the first bucket whose copy cannot be used, nil if there is none. A node of which there are others may start
// all the same: the copy counts for nothing, tells so, is dropped from the chain and begins anew. Where this is the only node
// nobody else has the bucket, and it must not be made to look as if it was never there.
func (p Past) Spoiled() error {
	for _, number := range slices.Sorted(maps.Keys(p)) {
		if err := p[number].Spoiled; err != nil {
			return fmt.Errorf("the journal's copy of bucket %d cannot be used: %w", number, err)
		}
	}
	return nil
}

// Begin says with what a bucket begins when its node starts, in its present life, and which member a copy is that has never
// been; ok is false if the bucket's half of another one is still to come. The other one, which is in the same journal, does
// not have that half any more if this bucket has begun. half says that the bucket may have been half of another one, whatever is known here
// (shared.State.Half).
func (p Past) Begin(number uint32, half bool, node, life uint64) (start Start, self chain.Member, ok bool) {
	start, self = p[number], chain.Member{Node: node, Inc: life << 32}
	missing, ok := p.begins(number, half)
	if missing {
		self.Inc = missedInc(number, life)
	}
	start.Halves = slices.DeleteFunc(slices.Clone(start.Halves), func(h Half) bool {
		_, there := p[h.Table.Bucket()]
		return there
	})
	if old := start.Chain.State.Self; old.Node != node || old.Inc>>32 != life {
		// What is there was another member's: of an earlier life, or of another node whose directory this was.
		start.Chain.State.Self = self
	}
	return start, self, ok
}

// begins says whether a bucket begins when its node starts, and whether it is half of one and that half is missing here.
func (p Past) begins(number uint32, half bool) (missing, ok bool) {
	if _, there := p[number]; there || number < p.founded() && (!half || !p.descends(number)) {
		return false, true
	}
	parent, known := p[ParentOf(number)]
	switch {
	case !known:
		_, ok = p.begins(ParentOf(number), half) // which may be still to come itself
	case slices.ContainsFunc(parent.Halves, func(h Half) bool { return h.Table.Bucket() == number }):
	default:
		ok = parent.Table.Born() == 0 || parent.Table.Buckets() > number // else it is to be split
	}
	return true, ok
}

// descends says whether there is something here of a bucket that this one may come from. If there is nothing, in a life in which the
// journal is whole, the copies of those have never had a view; so a view that names the first of them, or by a doubling this
// one's, has confirmed nothing. If there is something it may have nothing of what it had (it began anew: seed 13700014287), not know yet
// what it has, or be of a history that a recovery began.
func (p Past) descends(number uint32) bool {
	for number > 0 {
		number = ParentOf(number)
		if _, there := p[number]; there {
			return true
		}
	}
	return false
}

// founded is how many buckets there were at first, as far as this node has anything; if it has nothing, more than any number.
func (p Past) founded() (buckets uint32) {
	for _, start := range p { // order: the least of all
		if born := start.Table.Born(); born > 0 && (buckets == 0 || born < buckets) {
			buckets = born
		}
	}
	if buckets == 0 {
		return math.MaxUint32
	}
	return buckets
}

// ParentOf is the bucket that one was half of, if it was.
func ParentOf(number uint32) uint32 {
	if number == 0 {
		return 0
	}
	return number &^ (1 << (bits.Len32(number) - 1))
}

// Self is the member that begins with a fork, on a node in a life of it.
func (f *Fork) Self(node, life uint64) chain.Member {
	self := chain.Member{Node: node, Inc: life << 32}
	if f.Start.Table == nil {
		self.Inc = missedInc(f.Bucket, life)
	}
	return self
}
