package core

import (
	"encoding/binary"
	"maps"
	"slices"
)

// seen says which proposals were applied: a proposal that was repeated, by its proposer or by the network, is in the log
// more than once and counts the first time only. It is the same on all nodes at the same index, and goes into snapshots.
type seen map[uint64]*proposer

// proposer is what is known of one member's proposals.
type proposer struct {
	life uint64
	high uint64              // the highest id seen
	bits [window / 64]uint64 // bit id%window: seen, for the ids above high-window
}

// first notes a proposal and says whether it counts: it was never seen before, is of the proposer's newest life, and not so
// old that nobody knows any more.
func (s seen) first(e *envelope) bool {
	p := s[e.Raft]
	if p == nil || e.Life > p.life {
		p = &proposer{life: e.Life}
		s[e.Raft] = p
	}
	if e.Life < p.life || e.ID+window <= p.high {
		return false
	}
	if e.ID > p.high {
		for id := max(p.high+1, e.ID-min(e.ID, window)+1); id < e.ID; id++ {
			p.bits[id%window/64] &^= 1 << (id % 64)
		}
		p.high = e.ID
		p.set(e.ID)
		return true
	}
	if p.has(e.ID) {
		return false
	}
	p.set(e.ID)
	return true
}

func (p *proposer) set(id uint64)      { p.bits[id%window/64] |= 1 << (id % 64) }
func (p *proposer) has(id uint64) bool { return p.bits[id%window/64]&(1<<(id%64)) != 0 }

// state of one's own proposal in what came with a snapshot.
func (s seen) applied(raft, life, id uint64) bool {
	p := s[raft]
	return p != nil && p.life == life && (id+window <= p.high || id <= p.high && p.has(id))
}

// newerLife says whether a later life of a member has proposed something: what an earlier one proposes counts no more.
func (s seen) newerLife(raft, life uint64) bool {
	p := s[raft]
	return p != nil && p.life > life
}

// encode: a count, then for each by raft ID: ID, life, high, bits.
func (s seen) encode(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(s)))
	for _, id := range slices.Sorted(maps.Keys(s)) {
		p := s[id]
		b = binary.LittleEndian.AppendUint64(b, id)
		b = binary.AppendUvarint(b, p.life)
		b = binary.AppendUvarint(b, p.high)
		for _, word := range p.bits {
			b = binary.LittleEndian.AppendUint64(b, word)
		}
	}
	return b
}

func (r *reader) seen() seen {
	count := r.num()
	if count > maxMembers {
		r.fail("%d proposers", count)
		return nil
	}
	s := seen{}
	last := uint64(0)
	for range count {
		id := r.fixed()
		p := &proposer{life: r.num(), high: r.num()}
		for i := range p.bits {
			p.bits[i] = r.fixed()
		}
		if r.err == nil && (id <= last || p.life == 0) {
			r.fail("proposers in a wrong order")
		}
		if r.err != nil {
			return nil
		}
		last, s[id] = id, p
	}
	return s
}

func (s seen) proposers() []uint64 { return slices.Sorted(maps.Keys(s)) }
