package sim

import (
	"errors"
	"maps"
	"slices"

	"github.com/opencluster/oclocks/bucket/chain"
)

// links stands for broker/links.go: what a batch has for one node goes together.
type links struct {
	later map[uint64][][]byte
	armed bool
}

func (l *links) send(p *process, now, later []chain.Message) {
	boxes := map[uint64][][]byte{}
	encode := func(m *chain.Message) []byte {
		if len(m.Changes) > 0 && !p.w.healed && p.w.chance(p.w.mix.damage) {
			damaged := m.Changes[p.w.draw(len(m.Changes))]
			if len(damaged.Data) > 0 { // the memory of the copy stays what it is
				m.Changes = slices.Clone(m.Changes)
				for i := range m.Changes {
					if m.Changes[i].Seq == damaged.Seq {
						m.Changes[i].Data = slices.Clone(damaged.Data)
						m.Changes[i].Data[p.w.draw(len(damaged.Data))] ^= 1 << p.w.draw(8)
					}
				}
				p.w.fault("change damaged before its sum")
			}
		}
		return m.Encode(nil)
	}
	if l.later == nil {
		l.later = map[uint64][][]byte{}
	}
	for i := range now {
		boxes[now[i].To.Node] = append(boxes[now[i].To.Node], encode(&now[i]))
	}
	for i := range later {
		node := later[i].To.Node
		if _, goes := boxes[node]; goes {
			boxes[node] = append(boxes[node], encode(&later[i]))
			continue
		}
		l.later[node] = append(l.later[node], encode(&later[i]))
	}
	for _, node := range slices.Sorted(maps.Keys(boxes)) {
		l.post(p, node, append(l.later[node], boxes[node]...))
		delete(l.later, node)
	}
	if len(l.later) > 0 && !l.armed {
		l.armed = true
		p.timer(laterTime, func() {
			l.armed = false
			for _, node := range slices.Sorted(maps.Keys(l.later)) {
				l.post(p, node, l.later[node])
			}
			clear(l.later)
		})
	}
}

// post sends a frame to the node with a number.
func (l *links) post(p *process, node uint64, texts [][]byte) {
	from := p.number
	p.m.others(func(o *machine) {
		if o.p.number == node {
			p.w.send(p.m, o, "chain", func(q *process) { q.receiveChain(from, texts) })
		}
	})
}

func (p *process) receiveChain(from uint64, texts [][]byte) {
	if !p.serving {
		return
	}
	for _, text := range texts {
		text = p.w.damaged(text)
		m, err := chain.Decode(text)
		if err != nil {
			return // the frame's rest is not read
		}
		if m.Bucket >= p.count {
			continue
		}
		s := p.shardOf(m.Bucket)
		s.put(func() {
			c := s.cell(m.Bucket)
			if c == nil {
				return
			}
			if err := s.touch(c).Chain().Receive(from, m); err != nil && !errors.Is(err, chain.ErrMisdirected) {
				p.w.fail("%v: bucket %d does not take a message: %v", p.m, m.Bucket, err)
			}
		})
	}
}
