package broker

import (
	"testing"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/bucket/replicated"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/subjects"
)

// What stands at a bucket whose primary is gone costs nothing until its successor is known or its time is over.
func TestParkedRequestsDoNotSpin(t *testing.T) {
	d := &Daemon{shards: make([]*shard, 1)}
	s := newShard(d, 0)
	defer s.timer.Close()
	d.shards[0] = s
	z := &zone{d: d, name: "z"}
	z.configure(conf.Zone{Name: "z"})
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
	request := newTask(taskOne, z)
	request.req, request.hops = subjects.Request{Op: subjects.OpQuery, Name: "n"}, 1
	s.request(request, s.touch(c))
	turn := func() int64 {
		s.out.Reset()
		s.unpark(c)
		c.Round(s.now, &s.out)
		return c.due(s.now.Boot)
	}
	if due := turn(); len(c.parked) != 1 || due != s.now.Boot+int64(parkTime) {
		t.Fatalf("%d requests stand here, to be touched in %d ns", len(c.parked), due-s.now.Boot)
	}
	for range 2 { // whoever is gone cannot be asked, its successor can
		c.touched = false
		s.touch(c)
		turn()
		if len(c.parked) != 1 {
			t.Fatal("the request is not there any more")
		}
	}
	b.Chain().Seal(1) // and nobody asks a copy that must not answer
	if err := b.Chain().Install(chain.View{Epoch: 2, Chain: []chain.Member{self}, InSync: 1}); err != nil {
		t.Fatal(err)
	}
	turn()
	if due := turn(); len(c.parked) != 1 || due <= s.now.Boot { // it is the successor and must not act yet
		t.Fatalf("%d requests stand here, to be touched in %d ns", len(c.parked), due-s.now.Boot)
	}
	b.Chain().Grant(chain.Lease{Until: 1e12})
	turn() // it becomes the primary
	turn()
	if len(c.parked) != 0 || len(s.finished) != 1 || !c.Table().Primary() {
		t.Fatalf("%d requests stand here, %d are through, primary: %v", len(c.parked), len(s.finished), c.Table().Primary())
	}
}
