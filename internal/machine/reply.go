package machine

import (
	"fmt"

	"github.com/opencluster/oclocks/subjects"
)

// Reply takes the answer to the call with a reply token's number: data, or a refusal. Replies come at least once; those to
// calls that are over are ignored.
func (m *Machine) Reply(now int64, token uint64, data []byte, refusal *subjects.Refusal) {
	m.tickHolds(now)
	id := token >> eraBits
	c := m.byID[id]
	if c == nil {
		if id&1 != 0 && refusal == nil {
			m.lateGrant(now, data)
		}
		return
	}
	switch {
	case c.role == toProbe:
		m.probed(now, c, refusal)
	case refusal == nil:
		m.answered(now, c, data)
	case refusal.Code == 421:
		m.strayed(c)
		m.relocate(now, c, refusal)
	case refusal.Code == 503:
		m.pause(now, c, refusal, minBackoff, maxBackoff)
	case refusal.Reason == subjects.ReasonSession && c.inSession():
		m.sessionRefused(now, c, token != c.replyToken(), refusal)
	case m.renumbered(now, c, refusal):
	default:
		m.settle(now, c, Result{Refusal: refusal})
	}
}

// Unreachable says that nobody listens on the subject of a call (the "no responders" of NATS): nobody has got it.
func (m *Machine) Unreachable(now int64, token uint64) {
	m.tickHolds(now)
	switch c := m.byID[token>>eraBits]; {
	case c == nil || c.state != flying:
	case c.role == toProbe:
		m.probed(now, c, nobodyListens)
	case m.strayed(c):
		m.send(now, c)
	case c.Req.Op.OnName():
		m.vacate(now, c)
	default:
		m.pause(now, c, nobodyListens, minPoll, maxPoll)
	}
}

// Forbidden says that the NATS server did not let a message through to subject.
func (m *Machine) Forbidden(now int64, subject string) {
	m.tickHolds(now)
	for _, l := range []*callList{&m.others, &m.session.flight} {
		for _, c := range l.all() {
			if c.list == l && c.state == flying && c.subject == subject {
				m.settle(now, c, Result{Err: ErrForbidden})
			}
		}
	}
}

// answered takes an answer that is no refusal.
func (m *Machine) answered(now int64, c *Call, data []byte) {
	if !c.waits() && c.silent == 0 && c.refused == 0 {
		m.rtt.sample(now - c.last)
	}
	result := Result{Data: data}
	if (c.Req.Op == subjects.OpAcquire || c.Req.Op == subjects.OpRenew) && !c.Req.Enqueue {
		result = Result{Grant: new(subjects.Grant)}
		if err := result.Grant.DecodeJSON(data); err != nil {
			result = Result{Err: fmt.Errorf("read the grant: %w", err)}
		}
	}
	m.settle(now, c, result)
}

// settle takes the last word about a call.
func (m *Machine) settle(now int64, c *Call, r Result) {
	switch {
	case c.role == toLocate:
		m.finish(c, r)
		m.mapTold(now, r.Data)
	case c.role == toProbe:
		m.probed(now, c, r.Refusal)
	case c.role == toOpen:
		m.openSettled(now, c, r)
	case c.role == toCancel:
		m.cancelSettled(now, c, r)
	case c.Req.Op == subjects.OpAcquire:
		m.acquireSettled(now, c, r)
	case c.about != nil && c.Req.Op == subjects.OpRenew:
		sent := c.first
		m.finish(c, r)
		m.renewSettled(now, c, sent, r)
	case c.about != nil:
		m.releaseSettled(now, c, r)
	default:
		m.finish(c, r)
	}
	m.closeOn(now)
}

// told makes a refusal of what the machine found out by itself.
func told(reason, why, message string) *subjects.Refusal {
	return &subjects.Refusal{Code: 410, Reason: reason, Why: why, Message: message}
}
