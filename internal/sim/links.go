package sim

import (
	"cmp"
	"errors"
	"slices"

	"github.com/opencluster/oclocks/bucket/chain"
)

// links stands for broker/links.go: what a batch has for one node goes together.
type links struct {
	later []box
	now   []box
	armed bool
}

// box is what waits to be sent to a node. Lists of them are in the order of the nodes' numbers.
type box struct {
	node  uint64
	texts [][]byte
}

func boxOf(list *[]box, node uint64) (at int, there bool) {
	return slices.BinarySearchFunc(*list, node, func(b box, node uint64) int { return cmp.Compare(b.node, node) })
}

func put(list *[]box, node uint64, text []byte) {
	at, there := boxOf(list, node)
	if !there {
		*list = slices.Insert(*list, at, box{node: node})
	}
	b := &(*list)[at]
	b.texts = append(b.texts, text)
}

func (l *links) send(p *process, now, later []chain.Message) {
	for i := range now {
		put(&l.now, now[i].To.Node, p.encode(&now[i]))
	}
	for i := range later {
		node, list := later[i].To.Node, &l.later
		if _, goes := boxOf(&l.now, node); goes {
			list = &l.now
		}
		put(list, node, p.encode(&later[i]))
	}
	for _, b := range l.now {
		if at, waits := boxOf(&l.later, b.node); waits {
			b.texts = append(l.later[at].texts, b.texts...)
			l.later = slices.Delete(l.later, at, at+1)
		}
		l.post(p, b.node, b.texts)
	}
	clear(l.now)
	l.now = l.now[:0]
	if len(l.later) > 0 && !l.armed {
		l.armed = true
		p.timer(laterTime, func() {
			l.armed = false
			for _, b := range l.later {
				l.post(p, b.node, b.texts)
			}
			clear(l.later)
			l.later = l.later[:0]
		})
	}
}

// encode makes a message's bytes. The memory that they are made of may be damaged, though not the copy's.
func (p *process) encode(m *chain.Message) []byte {
	if len(m.Changes) > 0 && !p.w.healed && p.w.chance(p.w.mix.damage) {
		damaged := m.Changes[p.w.draw(len(m.Changes))]
		if len(damaged.Data) > 0 {
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

// post sends a frame to the node with a number.
func (l *links) post(p *process, node uint64, texts [][]byte) {
	for _, o := range p.w.machines {
		if o == p.m || o.p == nil || o.p.number != node {
			continue
		}
		for _, text := range texts {
			p.w.print.sent(p.w.now, p.m, o, text)
		}
		from := p.number
		p.w.send(p.m, o, "chain", func(q *process) { q.receiveChain(from, texts) })
	}
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
			m.Reset() // its memory is used again
		})
	}
}
