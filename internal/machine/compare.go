package machine

import (
	"math/bits"
	"time"

	"github.com/opencluster/oclocks/internal/mutant"
	"github.com/opencluster/oclocks/subjects"
)

const (
	maxOptional = 12 // tokens that an answer may or may not count, of which all subsets are tried
	maxChecking = 64 // renews of doubted holds at a time
)

// tally is what the client knows of the holds in one bucket, and what a node says.
type tally struct {
	part   *subjects.KeptBucket // nil: the node says nothing of the bucket
	stable []*Hold              // whose grant had arrived before the keep-alive was sent: these must be counted
	may    []*Hold              // whose grant came later, or whose release was under way: these may be
	times  map[uint64]int       // of a total: how many holds, wherever they are, have a token
}

// compare compares, bucket by bucket, the tokens that a node counts for the session with those that the client knows. Of a
// bucket that the node does not list it says nothing: another one is primary of it, or none.
func (m *Machine) compare(now int64, b sentBeat, k *subjects.Kept) {
	if k.Buckets == nil && k.Count > 0 {
		m.compareTotal(now, b, k)
		return
	}
	var homes []*home
	for i := range k.Buckets {
		if at := m.homes[k.Buckets[i].Bucket]; at != nil && at.tally.part == nil {
			at.tally.part = &k.Buckets[i]
			homes = append(homes, at)
		}
	}
	m.tallyUp(b, func(h *Hold) *tally {
		if h.home.tally.part == nil {
			return nil
		}
		return &h.home.tally
	})
	for _, at := range homes {
		m.judge(now, b, k.Lease, at, &at.tally, at.tally.part.Count, at.tally.part.Hash)
		m.primaryIs(now, at, at.tally.part.Epoch, k.Node, nil)
		clear(at.tally.stable)
		clear(at.tally.may)
		at.tally = tally{stable: at.tally.stable[:0], may: at.tally.may[:0]}
	}
	m.check(now)
}

// tallyUp puts the session's holds into the tallies that are being made.
func (m *Machine) tallyUp(b sentBeat, of func(h *Hold) *tally) {
	for _, h := range m.holds {
		if !m.counts(h) {
			continue
		}
		switch t := of(h); {
		case t == nil:
		case h.learned < b.at && h.phase == active:
			t.stable = append(t.stable, h)
		default:
			t.may = append(t.may, h)
		}
	}
	for _, h := range m.ghosts {
		if m.counts(h) && (h.goneAt == 0 || h.goneAt >= b.at) {
			if t := of(h); t != nil {
				t.may = append(t.may, h)
			}
		}
	}
}

// judge extends the trust in what the answer counts. If no choice of what may be counted explains it, nothing is extended,
// and the holds are asked for one by one.
func (m *Machine) judge(now int64, b sentBeat, lease time.Duration, at *home, t *tally, count int, hash uint64) {
	for _, h := range t.stable {
		hash ^= subjects.TokenHash(h.Grant.Token)
	}
	chosen, ok := choose(hash, count-len(t.stable), t.may)
	if !ok && t.part != nil && count > len(t.stable) {
		if chosen, ok = m.revived(now, b, at, hash, count-len(t.stable), t.may); !ok {
			m.releaseAgain(now, b, at, odd{hash: hash, count: count - len(t.stable)})
		}
	}
	if !ok && !mutant.On(mutant.KeepAliveExtendsAll) {
		blurred := m.session.acquiring > 0 || len(t.may) > 0
		m.mismatch(now, b, t.stable, blurred)
		m.mismatch(now, b, t.may, blurred)
		return
	}
	for _, h := range t.stable {
		if !t.twin(h) {
			m.hear(now, h, b.at, int64(lease))
		}
	}
	for i, h := range t.may {
		if chosen&(1<<i) != 0 && !t.twin(h) && h.list == inHolds && h.phase == active {
			m.hear(now, h, b.at, int64(lease))
		}
	}
	if t.times != nil {
		m.mismatch(now, b, t.stable, false)
	}
}

// compareTotal compares a node's total, where that is all that it tells, with the holds in the buckets of which it is thought
// to be primary. Tokens are unique in a bucket only: where buckets may have moved, a hold that is lost and another one with
// the same token that came look like one that is there, so such a token proves nothing.
func (m *Machine) compareTotal(now int64, b sentBeat, k *subjects.Kept) {
	var t tally
	elsewhere := false
	m.tallyUp(b, func(h *Hold) *tally {
		if h.home.node != k.Node {
			elsewhere = true
			return nil
		}
		return &t
	})
	if elsewhere || len(t.may) > 0 {
		t.times = make(map[uint64]int, len(m.holds))
		for _, list := range [][]*Hold{m.holds, m.ghosts} {
			for _, h := range list {
				t.times[h.Grant.Token]++
			}
		}
	}
	m.judge(now, b, k.Lease, nil, &t, k.Count, k.Hash)
	m.check(now)
}

// twin says whether another hold has the same token.
func (t *tally) twin(h *Hold) bool { return t.times[h.Grant.Token] > 1 }

// choose finds count tokens among optional whose hashes XOR to diff: those that the node counted.
func choose(diff uint64, count int, optional []*Hold) (chosen uint32, ok bool) {
	if diff == 0 && count == 0 {
		return 0, true
	}
	if count < 0 || count > len(optional) || len(optional) > maxOptional {
		return 0, false
	}
	var hash [maxOptional]uint64
	for i, h := range optional {
		hash[i] = subjects.TokenHash(h.Grant.Token)
	}
	// Gray codes: each subset differs from the one before by one token.
	for n := uint32(1); n < 1<<len(optional); n++ {
		i := bits.TrailingZeros32(n)
		diff ^= hash[i]
		chosen ^= 1 << i
		if diff == 0 && bits.OnesCount32(chosen) == count {
			return chosen, true
		}
	}
	return 0, false
}

// hear takes the proof that the broker has heard, for this hold, a message of the present incarnation.
func (m *Machine) hear(now int64, h *Hold, sent, lease int64) {
	switch {
	case !h.connection():
	case lease > 0:
		h.lease = lease
	case h.lease > m.session.lease:
		h.lease = m.session.lease // see shorten
	}
	h.heard = max(h.heard, sent)
	h.cut = 0
	m.schedule(now, h)
}

// mismatch doubts holds that an answer did not prove. If requests under way may explain the difference (blurred), only those
// are asked for that need a proof by now, and the others when they do.
func (m *Machine) mismatch(now int64, b sentBeat, holds []*Hold, blurred bool) {
	for _, h := range holds {
		switch {
		case h.list != inHolds || h.phase != active || h.heard >= b.at:
		case blurred && now < h.half():
			m.session.nextRound = min(m.session.nextRound, h.half())
		default:
			m.doubt(h, b.at)
		}
	}
}

// doubtUnproved asks for the holds of which no node has spoken.
func (m *Machine) doubtUnproved(now int64) {
	for _, h := range m.holds {
		if m.owes(h) {
			m.doubt(h, m.session.roundAt)
		}
	}
	m.check(now)
}

// doubt has a hold asked for, unless something that was sent at a time or later is answered for it before.
func (m *Machine) doubt(h *Hold, at int64) {
	if !h.doubted && h.renewing == nil {
		h.doubted, h.doubtedAt = true, at
		m.doubted = append(m.doubted, h)
	}
}

// check asks for the doubted holds, a limited number at a time.
func (m *Machine) check(now int64) {
	for m.checking < maxChecking && len(m.doubted) > 0 {
		h := m.doubted[0]
		m.doubted[0] = nil
		m.doubted = m.doubted[1:]
		h.doubted = false
		if h.phase == active && h.renewing == nil && h.heard < h.doubtedAt {
			m.checking++
			m.askRenew(now, h, true)
		}
	}
	if len(m.doubted) == 0 {
		m.doubted = nil
	}
}

// askRenew asks the broker for a hold by renewing it.
func (m *Machine) askRenew(now int64, h *Hold, check bool) {
	c := &Call{
		Req:  &subjects.Request{Op: subjects.OpRenew, Name: h.Grant.Name, Key: h.Grant.Key},
		role: toTidy, about: h, check: check, moves: h.phase == Pending || h.renewed(),
	}
	h.renewing = c
	m.start(now, c)
}

// Renew renews a hold for its caller: with another time limit or other data, if the call's request has them. It is false for a hold
// that has ended.
func (m *Machine) Renew(now int64, h *Hold, c *Call) bool {
	m.tickHolds(now)
	if h.phase != active {
		return false
	}
	c.Req.Op, c.Req.Name, c.Req.Key = subjects.OpRenew, h.Grant.Name, h.Grant.Key
	c.about, c.moves = h, true
	m.start(now, c)
	return true
}

// renewSettled takes the answer to a renew that was first sent at a time: the proof of the hold, or its loss.
func (m *Machine) renewSettled(now int64, c *Call, sent int64, r Result) {
	h := c.about
	if h.renewing == c {
		h.renewing = nil
	}
	defer m.extended(now, c, r)
	if c.check {
		m.checking--
		defer m.check(now)
	}
	if h.list != inHolds {
		return // released or lost meanwhile
	}
	switch {
	case r.Grant != nil && r.Grant.Token != h.Grant.Token:
		m.replaced(now, h)
	case r.Grant != nil:
		m.renewed(now, c, sent, r.Grant)
	case r.Refusal != nil && (r.Refusal.Code == 404 || r.Refusal.Code == 410 || r.Refusal.Code == 403):
		m.lose(now, h, r.Refusal)
	case h.phase == Pending:
		m.leave(h)
		lost := h.apart() // the Hold may begin anew
		m.haunt(lost)
		m.sendRelease(now, lost, "", tidyCall())
		m.disproved(now, h, r)
	case h.renewed():
		h.askAt = now + max(h.ttl/32, minBackoff) // refused for another reason: ask again
		m.holdsDue = min(m.holdsDue, h.askAt)
	}
}

// renewed takes the grant that answers a renew.
func (m *Machine) renewed(now int64, c *Call, sent int64, g *subjects.Grant) {
	h := c.about
	h.Grant.Node, h.Grant.Epoch = g.Node, g.Epoch
	m.primaryIs(now, h.home, g.Epoch, g.Node, c)
	known := c.terms == h.terms
	if c.moves && known {
		h.ttl, h.counted = int64(g.TTL), max(h.counted, sent)
		h.Grant.TTL, h.Grant.Lease = g.TTL, g.Lease
	}
	// One that was sent over an earlier connection, too, may be answered late for that sending.
	current := m.current(c.era) && sent >= m.session.since
	switch {
	case current:
		m.hear(now, h, sent, min(int64(g.Lease), m.session.lease)) // of a connection hold: max_lease may be shorter by now
	case !h.connection():
		m.schedule(now, h)
	}
	if !known && h.renewed() {
		h.askAt = max(h.askAt, now+max(h.ttl/32, minBackoff))
		m.holdsDue = min(m.holdsDue, h.askAt)
	}
	switch {
	case h.phase != Pending:
	case now < h.end() && (current || !h.connection()):
		m.proved(h)
	default:
		m.askRenew(now, h, false)
	}
}
