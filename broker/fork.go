package broker

import "github.com/opencluster/oclocks/bucket/replicated"

// fork begins a bucket that another one of this node was split into. It may be another shard's.
func (s *shard) fork(f *replicated.Fork) {
	d, fork := s.d, *f
	begun := func(bool) {
		d.tellCell(replicated.ParentOf(fork.Bucket), func(_ *shard, c *cell) { c.Begun() })
	}
	begin := &task{kind: taskCall, call: func(s *shard) {
		if s.cell(fork.Bucket) != nil {
			if fork.Start.Unstored {
				begun(false)
			}
			return
		}
		fork.Start.Stored = begun
		b, err := replicated.New(d.bucketConfig(fork.Bucket, fork.Self(d.number, d.life), s), fork.Start)
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
	s.told.Begin(s, c)
	for _, z := range *s.d.zones.Load() { // order: each is counted by itself
		c.count(z)
	}
}
