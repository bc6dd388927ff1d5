package broker

import (
	"log/slog"
	"slices"
	"testing"

	"github.com/opencluster/oclocks/broker/parking"
	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/bucket/replicated"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/subjects"
)

// scene is a shard with one bucket, of which this node has the copy that follows the primary's. The primary, node 2, is gone.
func scene(t testing.TB) (*shard, *cell, *zone) {
	d := &Daemon{shards: make([]*shard, 1), log: slog.New(slog.DiscardHandler)}
	d.metrics = newMetrics(d)
	s := newShard(d, 0)
	t.Cleanup(s.timer.Close)
	d.shards[0] = s
	self, primary := chain.Member{Node: 1, Inc: 1}, chain.Member{Node: 2, Inc: 1}
	b, err := replicated.New(replicated.Config{
		Table: bucket.Config{Buckets: 1}, Chain: chain.Config{Self: self, Limits: chain.Limits{Resend: 1e15, Drop: 1e15}},
	}, replicated.Start{})
	if err != nil {
		t.Fatal(err)
	}
	c := s.add(b)
	if err := b.Chain().Install(chain.View{Epoch: 1, Chain: []chain.Member{primary, self}, InSync: 2}); err != nil {
		t.Fatal(err)
	}
	d.peers.set(2, true)
	s.now.Boot = 1e9
	return s, c, sceneZone(s, "z")
}

func sceneZone(s *shard, name string) *zone {
	z := &zone{d: s.d, name: name}
	z.configure(conf.Zone{Name: name})
	s.queue.put(newTask(taskOne, z)) // it has asked something before
	s.queue.take(nil, 1)
	return z
}

// ask brings a request of a zone to the bucket.
func ask(s *shard, c *cell, z *zone, size int) *task {
	request := newTask(taskOne, z)
	request.req, request.trip.Hops, request.size = subjects.Request{Op: subjects.OpQuery, Name: "n"}, 1, size
	s.request(request, s.touch(c))
	return request
}

// succeed makes this node the bucket's primary, without a lease.
func succeed(t testing.TB, c *cell) {
	c.Chain().Seal(1)
	if err := c.Chain().Install(chain.View{Epoch: 2, Chain: []chain.Member{c.Chain().Self()}, InSync: 1}); err != nil {
		t.Fatal(err)
	}
}

// What stands at a bucket whose primary is gone costs nothing until its successor is known or its time is over.
func TestParkedRequestsDoNotSpin(t *testing.T) {
	s, c, z := scene(t)
	ask(s, c, z, 0)
	turn := func() int64 {
		s.out.Reset()
		s.unpark(c)
		c.Round(s.now, &s.out)
		return c.due(s.now.Boot)
	}
	if due := turn(); c.parked.Len() != 1 || due != s.now.Boot+int64(parking.Time) {
		t.Fatalf("%d requests stand here, to be touched in %d ns", c.parked.Len(), due-s.now.Boot)
	}
	for range 2 { // whoever is gone cannot be asked, its successor can
		c.touched = false
		s.touch(c)
		turn()
		if c.parked.Len() != 1 {
			t.Fatal("the request is not there any more")
		}
	}
	succeed(t, c) // and nobody asks a copy that must not answer
	turn()
	if due := turn(); c.parked.Len() != 1 || due <= s.now.Boot { // it is the successor and must not act yet
		t.Fatalf("%d requests stand here, to be touched in %d ns", c.parked.Len(), due-s.now.Boot)
	}
	c.Chain().Grant(chain.Lease{Until: 1e12})
	turn() // it becomes the primary
	turn()
	for _, again := range s.queue.take(nil, 2) {
		s.request(again, c)
	}
	if c.parked.Len() != 0 || len(s.finished) != 1 || !c.Table().Primary() {
		t.Fatalf("%d requests stand here, %d are through, primary: %v", c.parked.Len(), len(s.finished), c.Table().Primary())
	}
}

// Rule 7 of what must never happen: what one zone has standing at a bucket neither gets another zone's request refused nor
// makes it wait when the bucket has a primary again.
func TestParkingIsFairBetweenZones(t *testing.T) {
	s, c, flood := scene(t)
	calm, heavy := sceneZone(s, "calm"), sceneZone(s, "heavy")
	var first, second *task
	for range parking.DefaultLimits.Requests {
		ask(s, c, flood, 0)
	}
	second = ask(s, c, calm, 0)
	first = ask(s, c, heavy, parking.DefaultLimits.Bytes)
	if len(s.finished) != 0 || c.parked.Len() != parking.DefaultLimits.Requests+2 {
		t.Fatalf("%d requests were refused below the limit, %d stand here", len(s.finished), c.parked.Len())
	}
	for _, z := range []*zone{flood, heavy} {
		if one := ask(s, c, z, 1); len(s.finished) != 1 || s.finished[0] != one {
			t.Fatalf("a zone has more than its room: %s", z.name)
		}
		s.finished = s.finished[:0]
	}
	succeed(t, c)
	c.Chain().Grant(chain.Lease{Until: 1e12})
	for range 2 {
		s.unpark(c)
		c.Round(s.now, &s.out)
	}
	batch := s.queue.take(nil, 3)
	if c.parked.Len() != 0 || !slices.Contains(batch, first) || !slices.Contains(batch, second) {
		t.Errorf("two requests wait behind %d of another zone", parking.DefaultLimits.Requests)
	}
}

// Time is over for each by itself, and what a zone had that is gone is nobody's any more.
func TestParkedRequestsEnd(t *testing.T) {
	s, c, z := scene(t)
	gone := sceneZone(s, "gone")
	early := ask(s, c, z, 5)
	s.now.Boot += int64(parking.Time) / 2
	late := ask(s, c, z, 7)
	s.now.Boot += int64(parking.Time) / 2
	s.unpark(c)
	if len(s.finished) != 1 || s.finished[0] != early || c.parked.Len() != 1 || c.parked.Next(s.now.Boot, c.Turned()) != s.now.Boot+int64(parking.Time)/2 {
		t.Fatalf("%d are through, %d stand here", len(s.finished), c.parked.Len())
	}
	of := ask(s, c, gone, 0)
	s.queue.drop(gone)
	s.d.peers.set(2, false) // its primary is back
	s.unpark(c)
	if len(s.finished) != 2 || s.finished[1] != of || s.queue.lanes[gone] != nil {
		t.Errorf("%d are through", len(s.finished))
	}
	if batch := s.queue.take(nil, 2); len(batch) != 1 || batch[0] != late {
		t.Errorf("%d requests were given back", len(batch))
	}
	s.d.peers.set(2, true)
	ask(s, c, z, 0)
	s.dismiss(c)
	if ask(s, c, z, 0); c.parked.Len() != 0 || len(s.finished) != 4 {
		t.Errorf("%d requests stand where the node stops", c.parked.Len())
	}
}
