package machine

import (
	"fmt"

	"github.com/opencluster/oclocks/subjects"
)

// Reply takes the answer to the call with a reply token's number: data, or a refusal. Replies come at least once; those to
// calls that are over are ignored.
func (m *Machine) Reply(now int64, id uint64, data []byte, refusal *subjects.Refusal) {
	m.tickHolds(now)
	c := m.byID[id]
	if c == nil {
		return
	}
	if refusal == nil {
		m.answered(now, c, data)
		return
	}
	switch {
	case refusal.Code == 421:
		m.relocate(now, c, refusal)
	case refusal.Code == 503:
		m.pause(now, c, refusal)
	case refusal.Reason == subjects.ReasonSession && c.inSession():
		m.sessionRefused(now, c, refusal)
	default:
		m.settle(now, c, Result{Refusal: refusal})
	}
}

// Unreachable says that nobody listens on the subject of a call (the "no responders" of NATS).
func (m *Machine) Unreachable(now int64, id uint64) {
	m.Reply(now, id, nil, &subjects.Refusal{Code: 503, Reason: subjects.ReasonUnavailable, Message: "no broker answers"})
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

// relocate sends the call again, where the newer map says; without a map it asks for one first.
func (m *Machine) relocate(now int64, c *Call, why *subjects.Refusal) {
	to := why.Map
	if m.moved(to) {
		m.send(now, c)
		return
	}
	m.pause(now, c, why)
	if m.asking == nil && !m.closing && (to == nil || len(to.Primary) == 0) {
		m.asking = &Call{Req: &subjects.Request{Op: subjects.OpInfo}, role: toLocate}
		m.start(now, m.asking)
	}
}

// located takes the answer to the machine's own info.
func (m *Machine) located(data []byte) {
	m.asking = nil
	var info subjects.Info
	if data == nil || info.DecodeJSON(data) != nil {
		return // what asked is repeated, is refused again, and asks again
	}
	m.Locate(&info)
}

// answered takes an answer that is no refusal.
func (m *Machine) answered(now int64, c *Call, data []byte) {
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
		m.located(r.Data)
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
		m.gone(now, c.about)
		m.finish(c, r)
	default:
		m.finish(c, r)
	}
	m.closeOn(now)
}

// told makes a refusal of what the machine found out by itself.
func told(reason, why, message string) *subjects.Refusal {
	return &subjects.Refusal{Code: 410, Reason: reason, Why: why, Message: message}
}
