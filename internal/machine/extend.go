package machine

import "github.com/opencluster/oclocks/subjects"

// A renew may change the time limit of a hold, and make it shorter. Between its sending and its answer the broker may count
// by either limit, so the trust ends by whichever is over first. Answers may come in another order than the broker's doing, for
// a successor gives them again; so one such renew of a hold is sent after the other, and what was sent before one, or beside it,
// tells nothing about the limit.

// extends says whether the call is a renew that sets the time limit.
func (c *Call) extends() bool {
	return c.Req.Op == subjects.OpRenew && c.about != nil && c.Req.Has&subjects.HasTTL != 0
}

// extending says whether a renew that sets the limit is under way.
func (h *Hold) extending() bool { return h.extension != nil && h.extension.state != finished }

// inTurn is asked before a renew is sent: false if another one has to be answered before. From then on the trust is limited by what
// it sets, and its answer is known by its terms.
func (m *Machine) inTurn(now int64, c *Call) bool {
	h := c.about
	switch {
	case h == nil || c.Req.Op != subjects.OpRenew:
	case !c.extends():
		if c.first == 0 {
			if c.terms = h.terms; h.extending() {
				c.terms = unknownTerms
			}
		}
	case h.extension == c:
	case h.extending():
		return false
	default:
		h.terms++
		h.extension, c.terms = c, h.terms
		if ttl := int64(c.Req.TTL); ttl > 0 {
			if limit := now + threeQuarters(ttl); h.limit == 0 || limit < h.limit {
				h.limit = limit
			}
			m.holdsDue = min(m.holdsDue, h.limit)
		}
	}
	return true
}

// unknownTerms are those of a renew that was sent beside one that sets the limit.
const unknownTerms = ^uint64(0)

// extended takes the answer to a renew that sets the limit, and sends the next one. A refusal that does not end the hold says that
// nothing was done.
func (m *Machine) extended(now int64, c *Call, r Result) {
	h := c.about
	if h.extension != c {
		return
	}
	if r.Err == nil {
		h.limit, h.extension = 0, nil
	}
	for _, next := range m.others.all() {
		if next.list == &m.others && next.about == h && next.extends() && next.state == parked {
			m.send(now, next)
			return
		}
	}
}
