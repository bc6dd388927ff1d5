package broker

import (
	"math/bits"

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
	begin := &task{kind: taskCall, call: func(s *shard) {
		if s.cell(fork.Bucket) != nil {
			return
		}
		self := chain.Member{Node: d.number, Inc: d.life << 32}
		if fork.Start.Table == nil {
			self.Inc |= missed
		}
		b, err := replicated.New(d.bucketConfig(fork.Bucket, self, s), fork.Start)
		if err != nil {
			d.fail(err)
			return
		}
		c := s.add(b)
		if view, known := s.absent[fork.Bucket]; known {
			delete(s.absent, fork.Bucket)
			s.install(shared.BucketView{Bucket: fork.Bucket, View: view})
		}
		c.Chain().Applied(s.change)
		c.Chain().Grant(s.grant)
		s.score(c, d.state.Load())
		for _, z := range *d.zones.Load() { // order: each is counted by itself
			c.count(z)
		}
	}}
	d.shardOf(fork.Bucket).queue.put(begin)
}

// begins says with what a bucket begins when the daemon starts; ok is false if its half of another bucket is still to come.
func (d *Daemon) begins(past past, number uint32) (start replicated.Start, self chain.Member, ok bool) {
	self = chain.Member{Node: d.number, Inc: d.life << 32}
	start, there := past.starts[number]
	if there {
		return start, self, true
	}
	parent, known := past.starts[parentOf(number)]
	switch {
	case !known || number < parent.Table.Born() || parent.Table.Born() == 0:
		return start, self, true // it was never half of another one, or this node has nothing of either
	case parent.Half.Table != nil && parent.Half.Table.Bucket() == number, parent.Table.Buckets() <= number:
		return start, self, false
	}
	self.Inc |= missed
	return start, self, true
}

// parentOf is the bucket that one was half of, if it was.
func parentOf(number uint32) uint32 {
	if number == 0 {
		return 0
	}
	return number &^ (1 << (bits.Len32(number) - 1))
}
