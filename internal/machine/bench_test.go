package machine

import (
	"fmt"
	"testing"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// BenchmarkKeepAlive is one round of keep-alives of a client with many locks: what it costs twice in a lease.
func BenchmarkKeepAlive(b *testing.B) {
	for _, n := range []int{1, 1000, 100_000} {
		b.Run(fmt.Sprintf("holds=%d", n), func(b *testing.B) {
			m := New(Config{User: "u", Buckets: 1024, Timeout: time.Second, MaxCalls: 1 << 20, FirstBeat: 1})
			now := int64(time.Hour)
			m.session.phase, m.session.token, m.session.lease = open, "token", int64(scriptLease)
			kept := subjects.Kept{Node: "n", Count: n, Lease: scriptLease, Buckets: make([]subjects.KeptBucket, min(n, 32))}
			for i := range n {
				part := &kept.Buckets[i%32]
				h := &Hold{phase: active, kind: subjects.Connection, lease: int64(scriptLease), heard: now, learned: now}
				h.home = m.homeOf(uint32(i % 32))
				h.home.node, h.Grant.Token = "n", uint64(i+1)
				part.Bucket, part.Count, part.Hash = uint32(i%32), part.Count+1, part.Hash^subjects.TokenHash(h.Grant.Token)
				m.join(now, h)
				m.schedule(now, h)
			}
			b.ReportAllocs()
			for b.Loop() {
				now = m.session.nextRound
				m.Tick(now)
				kept.Beat = m.session.beat
				m.Kept(now+1, &kept)
				m.Take()
			}
			if h := m.holds[0]; h.heard != now {
				b.Fatal("the answer proves nothing")
			}
		})
	}
}

// BenchmarkAcquireRelease is what a lock and its release cost the machine.
func BenchmarkAcquireRelease(b *testing.B) {
	m := New(Config{User: "u", Buckets: 1024, Timeout: time.Second, MaxCalls: 100, FirstBeat: 1})
	now := int64(time.Hour)
	m.session.phase, m.session.token, m.session.lease = open, "token", int64(scriptLease)
	grant := (&subjects.Grant{Name: "orders/4711", Key: 1, Token: 1, Take: 1, Lease: scriptLease, Node: "n"}).AppendJSON(nil)
	released := (&subjects.Released{Token: 1}).AppendJSON(nil)
	b.ReportAllocs()
	for b.Loop() {
		now += 1000
		c := &Call{Req: &subjects.Request{Op: subjects.OpAcquire, Name: "orders/4711"}, Hold: &Hold{}, Endless: true}
		if err := m.Submit(now, c); err != nil {
			b.Fatal(err)
		}
		m.Reply(now+1, c.replyToken(), grant, nil)
		release := ownCall(c, &subjects.Request{})
		m.Release(now+2, c.Hold, "", release)
		m.Reply(now+3, release.replyToken(), released, nil)
		m.Take()
	}
}
