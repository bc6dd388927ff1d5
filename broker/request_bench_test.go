package broker

import (
	"testing"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/bucket/replicated"
	"github.com/opencluster/oclocks/subjects"
)

// BenchmarkTaken is a shard's share of a request that its bucket takes: a query, the cheapest one.
func BenchmarkTaken(b *testing.B) {
	s, c, z := scene(b)
	succeed(b, c)
	c.Chain().Grant(chain.Lease{Until: 1e18})
	for range 3 {
		s.touch(c)
		c.Round(s.now, &s.out)
		s.rest(0)
	}
	if c.Turned() != replicated.Taken {
		b.Fatal("the bucket takes no request")
	}
	t := newTask(taskOne, z)
	t.req = subjects.Request{Op: subjects.OpQuery, Name: "n"}
	t.in = bucket.Input{Kind: bucket.Request, Zone: z.name, Reply: "_INBOX.a"}
	b.ReportAllocs()
	for b.Loop() {
		s.out.Reset()
		s.request(t, s.touch(c))
		s.unpark(c)
		c.Round(s.now, &s.out)
		s.next[c.at], c.touched = c.due(s.now.Boot), false
		s.touched, s.finished = s.touched[:0], s.finished[:0]
	}
}

// BenchmarkParked is what a request costs that stands at a bucket once and is given back.
func BenchmarkParked(b *testing.B) {
	s, c, z := scene(b)
	t := newTask(taskOne, z)
	t.req, t.trip.Hops = subjects.Request{Op: subjects.OpQuery, Name: "n"}, 1
	b.ReportAllocs()
	for b.Loop() {
		s.d.peers.set(2, true)
		s.request(t, c)
		s.d.peers.set(2, false)
		s.unpark(c)
		if len(s.queue.take(nil, 1)) != 1 {
			b.Fatal("it was not given back")
		}
	}
}
