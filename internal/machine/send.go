package machine

import (
	"strconv"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// The times between repetitions, in nanoseconds.
const (
	endlessWait  = 5 * time.Minute        // `wait` of an acquire that waits as long as its caller does
	maxReattach  = int64(time.Minute)     // a waiting acquire is asked again at least so often, well within endlessWait
	maxSilence   = int64(8 * time.Second) // another request
	minBackoff   = int64(10 * time.Millisecond)
	maxBackoff   = int64(time.Second)
	minPoll      = int64(time.Millisecond)       // where nobody listens, which costs the broker nothing
	maxPoll      = int64(100 * time.Millisecond) // of many such subjects; of few, see pollEvery
	minMoved     = int64(2 * time.Millisecond)   // after 421: the hand-over of a bucket takes that long
	maxMoved     = int64(250 * time.Millisecond)
	maxStopping  = int64(100 * time.Millisecond) // a node that stops speaks for itself: another may answer by then
	maxRetryTold = int64(10 * time.Second)       // retry_after beyond this is not believed
)

// Submit begins a call. It is over with its Finish action, or with GiveUp.
func (m *Machine) Submit(now int64, c *Call) error {
	m.tickHolds(now)
	switch {
	case m.broken != nil:
		return m.broken
	case m.closing:
		return ErrClosing
	case len(m.byID) >= m.cfg.MaxCalls:
		return ErrTooMany
	}
	m.start(now, c)
	return nil
}

// start is Submit without its limits, for the machine's own calls as well.
func (m *Machine) start(now int64, c *Call) {
	if c.Endless {
		c.Req.Wait = endlessWait
		c.Req.Has |= subjects.HasWait
	}
	m.register(c)
	m.others.add(c)
	m.send(now, c)
}

// register gives the call a reply token, so that what it is answered can be told from everything else.
func (m *Machine) register(c *Call) {
	m.ids++
	c.id = m.ids<<1 | oddIfAcquire(c)
	m.byID[c.id] = c
}

// send sends the call, or parks it until it can be sent.
func (m *Machine) send(now int64, c *Call) {
	c.state, c.due = parked, Never
	if c.given && c.cancel != nil {
		c.state = flying // only its cancel is repeated
		return
	}
	if c.inSession() && !m.session.ready() {
		if m.session.phase == none && m.connected {
			m.open(now)
		}
		return
	}
	if c.Req.Op == subjects.OpNone { // waits for the session and for nothing else
		m.finish(c, Result{})
		return
	}
	if !m.connected || m.gated(c) || !m.inTurn(now, c) {
		return
	}
	if c.numbered() && c.Req.Number == 0 {
		m.number(now, c)
	}
	if c.inSession() {
		if c.era != m.session.era {
			c.eras++
		}
		c.Req.Session, c.era = m.session.token, m.session.era
	}
	if c.numbered() {
		c.Req.Done = m.session.flight.head.Req.Number
	}
	c.subject, c.bucket = m.subjectOf(c.Req)
	c.lane = m.laneFor(now, c)
	if c.first == 0 {
		c.first = now
	}
	c.last = now
	if c.waits() && !c.Endless { // a repetition does not wait longer on the whole
		if c.until == 0 {
			c.until = now + int64(c.Req.Wait)
		}
		c.Req.Wait = max(time.Duration(c.until-now), time.Millisecond)
	}
	if c.about != nil && c.Req.Op == subjects.OpRenew {
		c.Req.Trusted = c.about.phase == active && now < c.about.end()
	}
	c.state = flying
	c.due = now + m.patience(c)
	m.callsDue = min(m.callsDue, c.due)
	body := make([]byte, 0, bodySize+len(c.Req.Name)+len(c.Req.Session)+len(c.Req.Data))
	out := Action{Kind: Send, Subject: c.subject, Reply: CallToken(c.replyToken()), Body: c.Req.AppendJSON(body)}
	if c.lane != nil {
		out.Lane, out.Reply = c.lane.number, laneReplies(c.lane.number, out.Reply)
	}
	m.act(out)
}

// bodySize is room for the fields of a request that most requests have.
const bodySize = 160

// number gives the call its number and its place among those of the session.
func (m *Machine) number(now int64, c *Call) {
	m.session.number++
	c.Req.Number = m.session.number
	c.Req.Has |= subjects.HasRequest
	c.unlink()
	m.session.flight.add(c)
	if c.Req.Op == subjects.OpAcquire {
		m.need(now)
		m.session.acquiring++
	}
}

// unnumber takes the call's number from it.
func (m *Machine) unnumber(c *Call) {
	if c.numbered() && c.Req.Number != 0 {
		c.Req.Number = 0
		if c.Req.Op == subjects.OpAcquire {
			m.session.acquiring--
		}
	}
	c.unlink()
	c.first, c.silent, c.until = 0, 0, 0
}

// again makes a call that was over in the broker's eyes a new one: with another number, and answers to the old one ignored.
func (m *Machine) again(now int64, c *Call) {
	delete(m.byID, c.id)
	m.unnumber(c)
	m.act(Action{Kind: Anew, Call: c})
	m.start(now, c)
}

// patience is how long to wait for the answer before the call is repeated: at first a little longer than answers take, then
// longer each other time, since a node that stands still may take half of what is sent to a bucket that it has lost. A call
// that waits for others is repeated as soon, for nothing tells whether the broker has got it, but then far less often.
func (m *Machine) patience(c *Call) int64 {
	timeout := int64(m.cfg.Timeout)
	first, longest, doubled := m.rtt.patience(timeout), max(maxSilence, timeout), c.silent/2
	switch {
	case c.once(), c.Req.Op == subjects.OpList, c.Req.Op == subjects.OpSessionClose: // not repeated, or a burden on every node
		first, doubled = timeout, c.silent
	case c.waits():
		first, longest, doubled = 2*first, max(maxReattach, first), 2*c.silent
	case c.role == toProbe:
		longest = first
	case c.role == toTidy && c.about != nil && c.Req.Op == subjects.OpRenew:
		first = min(first, max(c.about.span()/16, minBackoff)) // a trust depends on it
	}
	d := first << min(doubled, 20)
	if d <= 0 || d > longest {
		d = longest
	}
	return m.jitter(d)
}

// subjectOf says where a request goes, and to which bucket if it goes to one.
func (m *Machine) subjectOf(r *subjects.Request) (subject string, bucket uint32) {
	if r.Op.OnName() {
		bucket = m.bucketOf(r.Name)
		return subjects.HotSubject(bucket, r.Op, m.cfg.User), bucket
	}
	return subjects.SimpleSubject(r.Op, m.cfg.User), 0
}

// eraBits is how much of the count of a call's eras its reply token tells: an answer that is told from those of 15 earlier
// ones is not that late.
const eraBits = 4

// replyToken is the number in the reply subject: the call's id, and in which of its eras it was sent, so that an answer
// to an earlier sending is known as such. All of them are about the call.
func (c *Call) replyToken() uint64 { return c.id<<eraBits | c.eras&(1<<eraBits-1) }

// CallOf is the call that the number of a reply token is of, whenever it was sent: those that were registered later have higher ones.
func CallOf(token uint64) uint64 { return token >> eraBits }

// CallToken is the reply token of a call, KeepToken that of a keep-alive.
func CallToken(token uint64) string { return "c" + strconv.FormatUint(token, 36) }

// KeepToken is the reply token of a keep-alive.
func KeepToken(beat uint64) string { return "k" + strconv.FormatUint(beat, 36) }

// resendDue repeats those calls of a list that are due.
func (m *Machine) resendDue(now int64, l *callList) {
	for c := l.head; c != nil; {
		next := c.next
		switch {
		case c.due > now:
			m.callsDue = min(m.callsDue, c.due)
		case c.state == flying && c.once():
			m.settle(now, c, Result{Err: ErrUnknown})
			m.callsDue = now // the rest of the list at the next Tick: settling may have changed it
			return
		default:
			if c.state == flying {
				c.silent++
				m.doubtLane(now, c)
			}
			m.send(now, c)
		}
		c = next
	}
}

// resendAll sends everything unfinished of a list again, after the connection or the session was renewed; but what was sent
// at this very moment.
func (m *Machine) resendAll(now int64, l *callList) {
	for _, c := range l.all() {
		if c.list == l && !(c.state == flying && (c.once() || c.last == now)) {
			c.refused = 0
			m.send(now, c)
		}
	}
}

// pause repeats the call later: after a refusal that says nothing about the request itself. At first it waits for low,
// then twice as long each time, and soon for an eighth of the time since the first refusal, at most for high: so it comes
// late by an eighth, and a trouble that lasts is not made worse.
func (m *Machine) pause(now int64, c *Call, why *subjects.Refusal, low, high int64) {
	if c.refused == 0 {
		c.refusedAt = now
	}
	d := max(low<<min(c.refused, 3), (now-c.refusedAt)/8)
	d = m.jitter(min(d, high))
	told := min(int64(why.RetryAfter), maxRetryTold)
	if why.Why == subjects.WhyStopping {
		told = min(told, maxStopping)
	}
	d = max(d, told)
	c.refused++
	c.why = why
	c.state, c.due = pausing, now+d
	m.callsDue = min(m.callsDue, c.due)
}

// finish ends a call and tells the caller, unless it has given up.
func (m *Machine) finish(c *Call, result Result) {
	if c.state == finished {
		return
	}
	delete(m.byID, c.id)
	m.unnumber(c)
	c.state, c.Result = finished, result
	if c.role == forCaller && !c.given {
		m.act(Action{Kind: Finish, Call: c})
	}
}
