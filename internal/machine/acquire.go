package machine

import (
	"github.com/opencluster/oclocks/internal/mutant"
	"github.com/opencluster/oclocks/subjects"
)

// acquireSettled takes the last word about an acquire.
func (m *Machine) acquireSettled(now int64, c *Call, r Result) {
	if r.Grant == nil && (r.Refusal == nil || r.Refusal.Above == 0) { // or the number may be another process's
		m.buryRefused(now, c)
	}
	switch {
	case c.given && r.Grant != nil && c.cancel != nil:
		c.Result.Grant = r.Grant // the cancel releases it; should it be refused, we do
	case c.given && c.cancel != nil && c.eras > 1 && r.Refusal != nil && r.Refusal.Above != 0:
		// What was sent in an earlier opening may wait under this number (renumber.go), and a cancel is not refused for it.
		c.low = true
	case c.given && r.Grant != nil:
		m.tidy(now, c, r.Grant)
		m.finish(c, r)
	case c.given:
		if c.cancel != nil {
			m.finish(c.cancel, r)
		}
		m.finish(c, r)
	case r.Grant != nil && c.Hold != nil:
		m.granted(now, c, r.Grant)
	case c.Endless && r.Refusal != nil && r.Refusal.Code == 408:
		m.again(now, c) // we could not ask again in time; the caller waits still
	default:
		m.finish(c, r)
	}
}

// granted begins the life of a hold. The call is over at once if the hold can be trusted; otherwise the broker is asked
// first whether it still exists.
func (m *Machine) granted(now int64, c *Call, g *subjects.Grant) {
	h := c.Hold
	h.begin(c, g, m.session.lease)
	if mutant.On(mutant.ClientFromReceipt) {
		h.heard, h.counted = now, now
	}
	h.home = m.homeOf(m.bucketOf(h.Grant.Name))
	m.primaryIs(now, h.home, g.Epoch, g.Node, c)
	if b, ok := m.session.find(g.Beat); ok {
		h.heard = max(h.heard, b.at)
	}
	h.learned, h.life = now, m.session.life
	m.join(now, h)
	proved := m.current(c.era) && h.heard >= m.session.since // by this acquire, or by the keep-alive that the grant quotes
	if now < h.doubtful() && (proved || !h.connection()) {
		h.phase = active
		m.schedule(now, h)
		m.finish(c, Result{Grant: &h.Grant})
		return
	}
	delete(m.byID, c.id)
	m.unnumber(c)
	c.state, h.acquire = proving, c
	m.askRenew(now, h, false)
}

// proved ends the acquire of a hold that turned out to exist.
func (m *Machine) proved(h *Hold) {
	c := h.acquire
	if c == nil {
		return
	}
	h.acquire, h.phase = nil, active
	m.finish(c, Result{Grant: &h.Grant})
}

// disproved goes on with the acquire of a hold that was lost before it could be trusted.
func (m *Machine) disproved(now int64, h *Hold, r Result) {
	c := h.acquire
	if c == nil {
		return
	}
	h.acquire = nil
	if h.renewing != nil {
		m.finish(h.renewing, Result{}) // its answer is about this grant, not about the next one
	}
	if c.Endless && !m.closing && r.Refusal != nil {
		h.reset()
		m.again(now, c)
		return
	}
	m.finish(c, r)
}

// GiveUp says that the caller does not wait for the call any longer; no Finish comes for it. What must be brought to its
// end nonetheless is: an acquire is cancelled so that no grant is left behind, a release or renew of a hold goes on. It
// returns false if the call was over already; a grant that it brought is then the caller's to release.
func (m *Machine) GiveUp(now int64, c *Call) bool {
	m.tickHolds(now)
	if c.state == finished || c.given {
		return false
	}
	c.given = true
	switch {
	case c.Req.Op == subjects.OpAcquire && (!c.Raw || c.Req.RequestID != "" || c.Req.Number != 0):
		m.giveUpAcquire(now, c)
	case c.about != nil:
	default:
		m.finish(c, Result{})
	}
	m.closeOn(now)
	return true
}

// giveUpAcquire makes sure that nothing of an acquire is left behind.
func (m *Machine) giveUpAcquire(now int64, c *Call) {
	switch {
	case c.state == proving:
		h := c.Hold
		h.acquire = nil
		m.finish(c, Result{})
		m.Release(now, h, "", tidyCall())
	case c.first == 0:
		m.finish(c, Result{}) // no broker has seen it
	default:
		c.cancel = &Call{
			Req:  &subjects.Request{Op: subjects.OpCancel, Name: c.Req.Name, Number: c.Req.Number, RequestID: c.Req.RequestID},
			role: toCancel, target: c,
		}
		if c.Raw {
			c.cancel.Req.Session = c.Req.Session
		}
		c.due = Never
		m.start(now, c.cancel)
	}
}

// cancelSettled ends the acquire that was cancelled. A cancel that is refused (which no role that may acquire should see)
// leaves the acquire open: it is repeated in place of the cancel, and its grant is released when it comes.
func (m *Machine) cancelSettled(now int64, c *Call, r Result) {
	acquire := c.target
	m.finish(c, r)
	acquire.cancel = nil
	switch {
	case acquire.state == finished:
	case r.Data != nil:
		m.buryCancelled(now, c, r.Data)
		m.finish(acquire, Result{})
	case acquire.Result.Grant != nil:
		m.tidy(now, acquire, acquire.Result.Grant)
		m.finish(acquire, Result{})
	case m.closing:
		m.finish(acquire, Result{})
	default:
		acquire.due = now + m.patience(acquire)
		m.callsDue = min(m.callsDue, acquire.due)
	}
}

// tidy releases a grant that nobody wants.
func (m *Machine) tidy(now int64, acquire *Call, g *subjects.Grant) {
	if !acquire.Raw {
		h := m.stray(g, acquire.holdKind())
		h.number = acquire.Req.Number
		m.sendRelease(now, h, "", tidyCall())
		return
	}
	req := &subjects.Request{Op: subjects.OpRelease, Name: acquire.Req.Name, Key: g.Key, Session: acquire.Req.Session}
	m.start(now, &Call{Req: req, Raw: true, role: toTidy, about: &Hold{kind: acquire.holdKind()}})
}
