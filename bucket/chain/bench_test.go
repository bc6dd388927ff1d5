package chain

import (
	"fmt"
	"testing"
)

// BenchmarkChain passes changes of 200 bytes along a chain of three with acks first, until each is answered: all the work of
// all three copies, encoding and decoding included, for one change.
func BenchmarkChain(b *testing.B) {
	for _, batch := range []int{1, 64} {
		b.Run(fmt.Sprintf("batch%d", batch), func(b *testing.B) {
			p := newPipe(b)
			data := make([]byte, 200)
			b.ReportAllocs()
			for n := 0; n < b.N; n += batch {
				p.propose(b, data, batch)
				seq := p.nodes[0].Status().Last.Seq
				for p.confirmed < seq {
					p.turn(b)
				}
			}
		})
	}
}

// BenchmarkPrimary is the primary's part of that: Propose, Ready that sends, Receive of the confirmation, Ready that answers.
func BenchmarkPrimary(b *testing.B) { benchmarkOne(b, 0) }

// BenchmarkSecondary is the first secondary's part: Receive, Ready that confirms and passes on, Receive of the tail's
// confirmation, Ready that passes it up.
func BenchmarkSecondary(b *testing.B) { benchmarkOne(b, 1) }

// benchmarkOne stops the clock for everything but one of the copies, encoding and decoding too.
func benchmarkOne(b *testing.B, which int) {
	for _, batch := range []int{1, 64} {
		b.Run(fmt.Sprintf("batch%d", batch), func(b *testing.B) {
			p := newPipe(b)
			data := make([]byte, 200)
			b.ReportAllocs()
			b.ResetTimer()
			b.StopTimer()
			for n := 0; n < b.N; n += batch {
				if which == 0 {
					b.StartTimer()
				}
				p.propose(b, data, batch)
				b.StopTimer()
				for range 3 {
					p.timed(b, which)
				}
			}
		})
	}
}

// BenchmarkIdle is what a bucket costs in a turn in which it has nothing to do.
func BenchmarkIdle(b *testing.B) {
	p := newPipe(b)
	for range 1000 {
		p.turn(b)
	}
	for b.Loop() {
		p.now += 1000
		for _, r := range p.nodes {
			if r.Next(p.now) <= p.now {
				b.Fatal("there is something to do")
			}
		}
	}
}

// pipe is three copies without tables and journals.
type pipe struct {
	now       int64
	nodes     [3]*Replica
	confirmed uint64
	raw       []byte
	message   Message // as it came
}

func newPipe(b testing.TB) *pipe {
	p := &pipe{now: second}
	v := View{Epoch: 1, Chain: []Member{one, two, three}, InSync: 2}
	for i, m := range v.Chain {
		r, err := New(Config{Self: m}, Start{})
		if err != nil {
			b.Fatal(err)
		}
		r.Grant(Lease{Until: 1 << 62})
		r.Tick(p.now)
		if err := r.Install(v); err != nil {
			b.Fatal(err)
		}
		p.nodes[i] = r
	}
	for range 10 {
		p.turn(b)
	}
	return p
}

func (p *pipe) propose(b testing.TB, data []byte, batch int) {
	for range batch {
		if _, err := p.nodes[0].Propose(data); err != nil {
			b.Fatal(err)
		}
	}
}

func (p *pipe) turn(b testing.TB) { p.each(b, func(int) {}, func(int) {}) }

// timed lets each copy have a turn. The clock of the benchmark runs only in what the one copy does.
func (p *pipe) timed(b *testing.B, which int) {
	only := func(do func()) func(i int) {
		return func(i int) {
			if i == which {
				do()
			}
		}
	}
	p.each(b, only(b.StartTimer), only(b.StopTimer))
}

// each lets each copy have a turn, and tells before and after of which copy it is that does something.
func (p *pipe) each(b testing.TB, before, after func(i int)) {
	p.now += 100_000
	for i, r := range p.nodes {
		before(i)
		r.Tick(p.now)
		out := r.Ready(p.now)
		after(i)
		if i == 0 {
			p.confirmed = out.Confirmed
		}
		for j := range out.Messages {
			p.raw = out.Messages[j].Encode(p.raw[:0])
			m := &p.message
			if err := m.Decode(p.raw); err != nil {
				b.Fatal(err)
			}
			to := int(m.To.Node) - 1
			before(to)
			err := p.nodes[to].Receive(m.From.Node, *m)
			after(to)
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}
