package broker

import (
	"math"
	"math/bits"
	"slices"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/bucket/replicated"
	"github.com/opencluster/oclocks/conf/shared"
)

// missed is in the incarnation of a copy that begins with nothing though its bucket is half of another one: the copy that
// the views name began with that half, so this one must be another.
const missed = 1 << 31

// fork begins a bucket that another one of this node was split into. It may be another shard's.
func (s *shard) fork(f *replicated.Fork) {
	d, fork := s.d, *f
	begun := func(bool) {
		d.tellCell(parentOf(fork.Bucket), func(_ *shard, c *cell) { c.Begun() })
	}
	begin := &task{kind: taskCall, call: func(s *shard) {
		if s.cell(fork.Bucket) != nil {
			if fork.Start.Unstored {
				begun(false)
			}
			return
		}
		self := chain.Member{Node: d.number, Inc: d.life << 32}
		if fork.Start.Table == nil {
			self.Inc |= missed
		}
		fork.Start.Stored = begun
		b, err := replicated.New(d.bucketConfig(fork.Bucket, self, s), fork.Start)
		if err != nil {
			d.fail(err)
			return
		}
		s.begin(s.add(b))
	}}
	d.shardOf(fork.Bucket).queue.put(begin)
}

// begin tells a bucket that has just begun what the others were told before.
func (s *shard) begin(c *cell) {
	if view, known := s.absent[c.Number()]; known {
		delete(s.absent, c.Number())
		s.install(shared.BucketView{Bucket: c.Number(), View: view})
	}
	c.Chain().Applied(s.change)
	c.Chain().Grant(s.grant)
	state := s.d.state.Load()
	for i := range state.Nodes {
		if node := state.Nodes[i].Number; s.d.peers.gone(node) {
			c.Chain().Away(node, true)
		}
	}
	s.score(c, state)
	for _, z := range *s.d.zones.Load() { // order: each is counted by itself
		c.count(z)
	}
}

// begins says with what a bucket begins when the daemon starts; ok is false if its half of another bucket is still to come.
func (d *Daemon) begins(past past, number uint32) (start replicated.Start, self chain.Member, ok bool) {
	self = chain.Member{Node: d.number, Inc: d.life << 32}
	start, there := past.starts[number]
	if there || number < past.founded() {
		return start, self, true
	}
	parent, known := past.starts[parentOf(number)]
	switch {
	case !known:
		_, _, ok = d.begins(past, parentOf(number)) // which may be still to come itself
	case slices.ContainsFunc(parent.Halves, func(h replicated.Half) bool { return h.Table.Bucket() == number }):
	default:
		ok = parent.Table.Born() == 0 || parent.Table.Buckets() > number // else it is to be split
	}
	self.Inc |= missed
	return start, self, ok
}

// founded is how many buckets there were at first, as far as this node has anything; if it has nothing, more than any number.
func (p past) founded() (buckets uint32) {
	for _, start := range p.starts { // order: the least of all
		if born := start.Table.Born(); born > 0 && (buckets == 0 || born < buckets) {
			buckets = born
		}
	}
	if buckets == 0 {
		return math.MaxUint32
	}
	return buckets
}

// parentOf is the bucket that one was half of, if it was.
func parentOf(number uint32) uint32 {
	if number == 0 {
		return 0
	}
	return number &^ (1 << (bits.Len32(number) - 1))
}
