package arbiter

import (
	"fmt"
	"testing"
	"time"
)

// BenchmarkCommit is the time from Propose at the leader of three to the answer; with the disk, two fsyncs one after the other
// are in it.
func BenchmarkCommit(b *testing.B) {
	for name, disk := range map[string]bool{"memory": false, "disk": true} {
		b.Run(name, func(b *testing.B) {
			g := newGroup(b, disk, 3)
			g.grow()
			l := g.leader()
			for b.Loop() {
				l.propose("x")
			}
		})
	}
}

// BenchmarkFailover is the time from the death of the leader of three, whose connections close, to a leader that has applied
// everything; the dead one comes back in between.
func BenchmarkFailover(b *testing.B) {
	for name, disk := range map[string]bool{"memory": false, "disk": true} {
		b.Run(name, func(b *testing.B) {
			g := newGroup(b, disk, 3)
			g.grow()
			var sum, worst time.Duration
			rounds := 0
			for b.Loop() {
				b.StopTimer()
				old := g.leader()
				raft := old.raft()
				old.kill()
				b.StartTimer()
				begin := time.Now()
				g.closeConnections(raft)
				g.newLeader(old)
				took := time.Since(begin)
				b.StopTimer()
				sum, worst, rounds = sum+took, max(worst, took), rounds+1
				old.start(false)
				for _, m := range g.alive() {
					m.a.Peer(raft, true)
				}
				text := fmt.Sprint("round ", rounds)
				g.newLeader(nil).propose(text)
				g.wait("the old one to catch up", func() bool {
					have := old.fsm.texts()
					return len(have) > 0 && have[len(have)-1] == text
				})
				b.StartTimer()
			}
			b.ReportMetric(float64(worst.Microseconds())/1000, "ms-worst")
			b.ReportMetric(float64(sum.Microseconds())/1000/float64(rounds), "ms-mean")
		})
	}
}
