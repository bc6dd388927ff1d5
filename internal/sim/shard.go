package sim

import (
	"github.com/opencluster/oclocks/broker/edge"
	"github.com/opencluster/oclocks/broker/parking"
	"github.com/opencluster/oclocks/broker/spread"
	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/bucket/replicated"
	"github.com/opencluster/oclocks/internal/journal"
	"github.com/opencluster/oclocks/subjects"
)

const (
	batchTasks = 256    // broker/shard.go
	laterTime  = 2 * ms // broker/links.go
)

func (w *world) tableConfig(number, buckets uint32) bucket.Config {
	return bucket.Config{Bucket: number, Buckets: buckets, Limits: bucket.Limits{MaxLease: w.mix.maxLease}, Journaled: true, SyncAlways: w.mix.sync == journal.Always}
}

// openBuckets is Daemon.openBuckets.
func (p *process) openBuckets() error {
	p.count = uint32(len(p.state.Views))
	shards := min(p.w.mix.shards, int(p.count))
	for i := range shards {
		s := &shard{p: p, lot: parking.NewLot[string, *task](parking.DefaultLimits)}
		s.told = spread.NewShare[*chain.Replica, *cell](p.number, i, shards, p.state)
		s.actor = p.actor("a shard", s.run, s.nextDue)
		p.shards = append(p.shards, s)
	}
	for number := range p.count {
		s := p.shardOf(number)
		start, self, ok := p.past.starts.Begin(number, p.state.Half(number), p.number, p.life)
		if !ok {
			continue
		}
		b, err := replicated.New(p.bucketConfig(number, self), start)
		if err != nil {
			return err
		}
		p.w.check.begun(p, s.add(b))
	}
	p.past = past{whole: p.past.whole}
	for _, s := range p.shards {
		s.ring()
	}
	return nil
}

func (p *process) bucketConfig(number uint32, self chain.Member) replicated.Config {
	table := p.w.tableConfig(number, p.count)
	table.Limits.MaxLease = p.state.Settings.MaxLease
	return replicated.Config{
		Table: table,
		Chain: chain.Config{Bucket: number, Self: self, Acks: p.state.Settings.Acks, Recovery: int64(p.state.Recovery())},
		Zones: p.w.zoneSettings(),
	}
}

func (p *process) shardOf(number uint32) *shard { return p.shards[int(number)%len(p.shards)] }

// shard stands for broker/shard.go, perform.go, cell.go, park.go, fork.go, copies.go and links.go.
type shard struct {
	p *process
	*actor
	cells   []*cell
	tasks   []func()
	lot     *parking.Lot[string, *task]
	told    *spread.Share[*chain.Replica, *cell]
	now     bucket.Now
	touched []*cell
	out     replicated.Output
	closed  edge.ClosedConns
	reports []func() // what is told when what the batch has asked is on its way
}

type cell struct {
	*replicated.Bucket
	touched bool
	later   bool
	parked  parking.Place[*task]
	due     int64 // by the machine's clock
}

// task is a request of a client.
type task struct {
	in     bucket.Input
	req    subjects.Request
	bucket uint32
	trip   parking.Trip
}

func (t *task) Trip() *parking.Trip { return &t.trip }

func (t *task) Load() (string, int) { return t.in.Zone, len(t.req.Name) + len(t.req.Data) }

func (s *shard) add(b *replicated.Bucket) *cell {
	c := &cell{Bucket: b}
	s.cells = append(s.cells, c)
	return c
}

func (s *shard) cell(number uint32) *cell {
	for _, c := range s.cells {
		if c.Number() == number {
			return c
		}
	}
	return nil
}

func (s *shard) put(do func()) {
	s.tasks = append(s.tasks, do)
	s.ring()
}

func (s *shard) nextDue() int64 {
	if len(s.tasks) > 0 {
		return s.p.m.clock()
	}
	next := never
	for _, c := range s.cells {
		next = min(next, c.due)
	}
	return next
}

// run is shard.batch.
func (s *shard) run() {
	p := s.p
	n := min(len(s.tasks), batchTasks)
	tasks := s.tasks[:n:n]
	s.tasks = s.tasks[n:]
	s.now = bucket.Now{Boot: p.m.clock(), Wall: p.m.wall()}
	s.out.Reset()
	p.w.stats.Batches++
	for _, c := range s.cells {
		if c.due <= s.now.Boot {
			s.touch(c)
		}
	}
	for _, do := range tasks {
		do()
	}
	grown := false
	for i := 0; i < len(s.touched); i++ {
		c := s.touched[i]
		s.unpark(c)
		c.later = grown
		grown = c.Grow(s.now, p.count, !grown) || grown
		c.Round(s.now, &s.out)
		if err := c.Err(); err != nil {
			p.w.fail("%v: %v", p.m, err)
			return
		}
	}
	if p.store(s.out.Records) {
		for _, c := range s.touched {
			p.w.check.round(p, c, s.out.Released)
		}
		s.perform()
	}
	for _, c := range s.touched {
		c.touched = false
		c.due = s.dueOf(c)
	}
	s.touched = s.touched[:0]
}

func (s *shard) perform() {
	p := s.p
	p.links.send(p, s.out.Messages, s.out.Later)
	for i := range s.out.Released {
		p.publish(&s.out.Released[i].Effect)
	}
	for _, mark := range s.out.Marks {
		if do, ok := mark.Mark.(func(lost bool)); ok {
			do(mark.Lost)
		}
	}
	reports := s.reports
	s.reports = nil
	for _, report := range reports {
		report()
	}
	for _, t := range s.out.Turns {
		if p.turns[t.Bucket] = t.Primary; t.Primary {
			s.closeAgain(t.Bucket)
		}
	}
	for i := range s.out.Forks {
		s.fork(s.out.Forks[i])
	}
	for _, q := range s.out.Proposals {
		p.w.tell("%v: bucket %d asks for %v", p.m, q.Bucket, q.View)
		p.ask(q.Bucket, q.View)
	}
	for _, r := range s.out.Reports {
		p.w.tell("%v: bucket %d is sealed: %v", p.m, r.Bucket, r.Report)
		p.desk.sealed(r.Bucket, r.Report)
	}
	for _, a := range s.out.Alerts {
		p.w.check.alert(p, a.Bucket, a.Text)
	}
}

func (s *shard) touch(c *cell) *cell {
	if !c.touched {
		c.touched = true
		s.touched = append(s.touched, c)
		c.Tick(s.now)
	}
	return c
}

func (s *shard) dueOf(c *cell) int64 {
	next := c.Next(s.now.Boot)
	if c.later {
		next = s.now.Boot
	}
	if c.parked.Len() == 0 {
		return next
	}
	return min(next, c.parked.Next(s.now.Boot, c.Turned()))
}

// fork begins a bucket that another one of this node was split into.
func (s *shard) fork(f replicated.Fork) {
	p := s.p
	p.w.check.forked(p, &f)
	begun := func(bool) {
		p.tellCell(replicated.ParentOf(f.Bucket), func(_ *shard, c *cell) { c.Begun() })
	}
	to := p.shardOf(f.Bucket)
	to.put(func() {
		if to.cell(f.Bucket) != nil {
			if f.Start.Unstored {
				begun(false)
			}
			return
		}
		f.Start.Stored = begun
		b, err := replicated.New(p.bucketConfig(f.Bucket, f.Self(p.number, p.life)), f.Start)
		if err != nil {
			p.w.fail("%v: begin bucket %d: %v", p.m, f.Bucket, err)
			return
		}
		p.w.tell("%v begins bucket %d, with its half: %t", p.m, f.Bucket, f.Start.Table != nil)
		c := to.add(b)
		p.w.check.begun(p, c)
		to.told.Begin(to, c)
	})
}
