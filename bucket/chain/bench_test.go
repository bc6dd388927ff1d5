package chain

import "testing"

// BenchmarkChain passes changes of 200 bytes along a chain of three with acks first, until each is answered: all the work of
// all three copies, encoding and decoding included, for one change.
func BenchmarkChain(b *testing.B) {
	for _, batch := range []int{1, 16, 256} {
		b.Run(map[int]string{1: "one", 16: "batch16", 256: "batch256"}[batch], func(b *testing.B) {
			p := newPipe(b)
			data := make([]byte, 200)
			b.ReportAllocs()
			for n := 0; n < b.N; n += batch {
				for range batch {
					if _, err := p.nodes[0].Propose(data); err != nil {
						b.Fatal(err)
					}
				}
				seq := p.nodes[0].Status().Last.Seq
				for p.confirmed < seq {
					p.turn(b)
				}
			}
		})
	}
}

// pipe is three copies without tables and journals.
type pipe struct {
	now       int64
	nodes     [3]*Replica
	confirmed uint64
}

func newPipe(b *testing.B) *pipe {
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

func (p *pipe) turn(b *testing.B) {
	p.now += 1000
	for i, r := range p.nodes {
		out := r.Ready(p.now)
		if i == 0 {
			p.confirmed = out.Confirmed
		}
		for j := range out.Messages {
			m, err := Decode(out.Messages[j].Encode(nil))
			if err != nil {
				b.Fatal(err)
			}
			if err := p.nodes[m.To.Node-1].Receive(m.From.Node, m); err != nil {
				b.Fatal(err)
			}
		}
	}
}
