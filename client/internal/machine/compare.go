package machine

import (
	"math/bits"

	"github.com/opencluster/oclocks/subjects"
)

const (
	maxOptional = 12 // tokens that an answer may or may not count, of which all subsets are tried
	maxChecking = 64 // renews of doubted holds at a time
)

// compare compares the tokens that a node counts for the session with those that the client knows. Holds whose grant had
// arrived before the keep-alive was sent must be counted; those whose grant came later, or whose release was under way,
// may be. If no choice of these explains the answer, nothing is extended by it.
func (m *Machine) compare(now int64, b sentBeat, k *subjects.Kept) {
	var sum uint64
	stable := 0
	var optional []*Hold
	for _, h := range m.holds {
		switch {
		case !m.counts(h, k.Node):
		case h.learned < b.at && h.phase == active:
			sum ^= subjects.TokenHash(h.Grant.Token)
			stable++
		default:
			optional = append(optional, h)
		}
	}
	for _, h := range m.ghosts {
		if m.counts(h, k.Node) && (h.goneAt == 0 || h.goneAt >= b.at) {
			optional = append(optional, h)
		}
	}
	chosen, ok := choose(sum^k.Hash, k.Count-stable, optional)
	if !ok || m.ambiguous(k.Node, optional) {
		m.mismatch(now, k.Node, m.session.acquiring > 0 || len(optional) > 0)
		return
	}
	for _, h := range m.holds {
		if m.counts(h, k.Node) && h.learned < b.at && h.phase == active {
			m.hear(now, h, b.at, int64(k.Lease))
		}
	}
	for i, h := range optional {
		if chosen&(1<<i) != 0 && h.list == inHolds && h.phase == active {
			m.hear(now, h, b.at, int64(k.Lease))
		}
	}
}

// ambiguous says whether an optional token equals that of another hold. Tokens are unique in a bucket only, so the answer
// may count the one or the other then.
func (m *Machine) ambiguous(node string, optional []*Hold) bool {
	for _, o := range optional {
		for _, h := range m.holds {
			if h != o && h.Grant.Token == o.Grant.Token && m.counts(h, node) {
				return true
			}
		}
	}
	return false
}

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
	if lease > 0 && h.connection() {
		h.lease = lease
	}
	h.heard = max(h.heard, sent)
	h.cut = 0
	m.schedule(now, h)
}

// mismatch asks for the holds of a node one by one. If requests under way may explain the difference (blurred), only those
// are asked for that need a proof by now, and the others when they do.
func (m *Machine) mismatch(now int64, node string, blurred bool) {
	for _, h := range m.holds {
		if !m.counts(h, node) || h.phase != active {
			continue
		}
		if blurred && now < h.half() {
			m.session.nextRound = min(m.session.nextRound, h.half())
			continue
		}
		m.doubt(h)
	}
	m.check(now)
}

// doubtNode asks for every hold of a node that does not answer.
func (m *Machine) doubtNode(now int64, node string) {
	m.mismatch(now, node, false)
}

func (m *Machine) doubt(h *Hold) {
	if !h.doubted && h.renewing == nil {
		h.doubted = true
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
		if h.phase == active && h.renewing == nil {
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

// Renew renews a hold for its caller: with another time limit or other data, if the request has them. It fails for a hold
// that has ended (nil).
func (m *Machine) Renew(now int64, h *Hold, req *subjects.Request, owner any) *Call {
	m.tickHolds(now)
	if h.phase != active {
		return nil
	}
	req.Op, req.Name, req.Key = subjects.OpRenew, h.Grant.Name, h.Grant.Key
	c := &Call{Req: req, Owner: owner, about: h, moves: true}
	m.start(now, c)
	return c
}

// renewSettled takes the answer to a renew that was first sent at a time: the proof of the hold, or its loss.
func (m *Machine) renewSettled(now int64, c *Call, sent int64, r Result) {
	h := c.about
	if h.renewing == c {
		h.renewing = nil
	}
	if c.check {
		m.checking--
		defer m.check(now)
	}
	if h.list != inHolds {
		return // released or lost meanwhile
	}
	switch {
	case r.Grant != nil:
		m.renewed(now, c, sent, r.Grant)
	case r.Refusal != nil && (r.Refusal.Code == 404 || r.Refusal.Code == 410 || r.Refusal.Code == 403):
		m.lose(now, h, r.Refusal)
	case h.phase == Pending:
		m.leave(h)
		m.haunt(h)
		m.sendRelease(now, h, "", nil)
		m.disproved(now, h, r)
	case h.renewed():
		h.askAt = now + max(h.ttl/32, minBackoff) // refused for another reason: ask again
		m.holdsDue = min(m.holdsDue, h.askAt)
	}
}

// renewed takes the grant that answers a renew.
func (m *Machine) renewed(now int64, c *Call, sent int64, g *subjects.Grant) {
	h := c.about
	h.node, h.Grant.Node, h.Grant.Epoch = g.Node, g.Node, g.Epoch
	if c.moves {
		h.ttl, h.counted = int64(g.TTL), max(h.counted, sent)
		h.Grant.TTL, h.Grant.Lease = g.TTL, g.Lease
	}
	switch current := m.current(c.era); {
	case current:
		m.hear(now, h, sent, 0)
	case !h.connection():
		m.schedule(now, h)
	}
	switch {
	case h.phase != Pending:
	case now < h.end() && (m.current(c.era) || !h.connection()):
		m.proved(h)
	default:
		m.askRenew(now, h, false)
	}
}
