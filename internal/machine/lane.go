package machine

import (
	"cmp"
	"maps"
	"strconv"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// A lane is a further connection, to a node whose buckets are often asked: a request over it and its answer save the way between two
// servers. The session lives on the home connection, and nothing depends on lanes:
//
//   - What goes over a lane is the first sending of a numbered request (acquire, release, renew of the session) to the node that
//     is thought to be its bucket's primary, and the answer to it. All else goes home: the session's opening and close, keep-alives,
//     cancels, probes, questions, events, and whatever is sent again, for whatever reason.
//   - The broker knows of the home connection only (Config.Conn, session-open). The end of a lane ends nothing there, and the end of
//     the home connection begins the grace of the session's holds, as it does without lanes.
//   - A lane breaks, or is closed because it is idle: what was sent over it and is not answered is sent again at once, home. The home
//     connection takes over the lane's inbox, so that who answers late is heard: a waiter's reply subject is replicated and may
//     be used much later, by another primary, to tell of a grant that nobody waits for any more and that is to be given back (orphan.go).
//   - A lane stands still: what is not answered in time is sent again, home, and the lane is not used for a while.
//   - The bucket's primary moves: NATS brings the request on from the lane's node to wherever it is. If nobody is there (503), or
//     that node refuses it (421), it is sent home, and so is all for that bucket until its primary has told of itself.
//   - The home connection breaks: nothing is sent at all until it is back. An answer over a lane meanwhile is taken for what it says, but
//     proves nothing (current): the broker may have begun the grace, which may be shorter than 3/4 of the lease. So a connection hold
//     is pending until a renew over the next connection has found it. In the moments until a client notices the break a lane may still
//     bring it a grant, whose grace is as long as the lease then: what has a shorter one goes home (endsWithHome).
//   - What comes over several connections comes in any order, as what comes from several nodes always has: an event, a repeated answer or
//     a keep-alive's comparison may overtake a grant or be overtaken. Each tells of itself by token, number, incarnation and beat what it
//     is about, trust counts from the sending, and nothing is concluded from an order of arrival.

// The limits of lanes.
const (
	laneBusy    = 32                      // requests for a node in a laneWindow that are worth a lane, unless Config says otherwise
	laneWindow  = int64(time.Second)      //
	laneIdle    = int64(30 * time.Second) // a lane that is not used for so long is closed
	laneGood    = int64(10 * time.Second) // one that was open for so long is not a failed try
	laneRest    = int64(time.Second)      // before the next try after the first that failed; then twice as long each time
	laneMaxRest = int64(time.Minute)
)

// lane is what the machine knows of the lane to one node.
type lane struct {
	node   string
	number int // in Machine.slots, counted from 1; 0 while it is closed
	open   bool
	asked  int   // requests for the node since since
	since  int64 // begin of the window that is counted
	opened int64
	used   int64 // the newest request over it
	doubt  int64 // not used before: it was silent
	fails  int   // tries in vain, one after the other
	rest   int64 // no try before
}

// slot is the place of a lane that is open or about to be. Its inbox is its own for the life of the machine.
type slot struct {
	lane *lane // nil: it is free
	home bool  // the home connection listens to its inbox
}

// laneReplies are the last tokens of the reply subjects of what is sent over the lane with a number.
func laneReplies(number int, token string) string { return strconv.Itoa(number) + "." + token }

// laneFor gives the lane over which a call is to be sent; nil for the home connection. It asks for a lane where there is
// enough to do for one.
func (m *Machine) laneFor(now int64, c *Call) *lane {
	if len(m.slots) == 0 || c.first != 0 || !c.numbered() || m.endsWithHome(c) {
		return nil
	}
	at := m.homes[c.bucket]
	if at == nil || at.astray || at.node == "" || at.node == m.conn.Node {
		return nil
	}
	l := m.laneTo(now, at.node)
	switch {
	case l.open && now < l.doubt:
		return nil
	case l.open:
		l.used = now
		return l
	case now-l.since > laneWindow:
		l.since, l.asked = now, 0
	}
	l.asked++
	if l.number == 0 && l.asked >= cmp.Or(m.cfg.Busy, laneBusy) && now >= l.rest && !m.closing {
		m.openLane(l)
	}
	return nil
}

// endsWithHome says whether the hold that is asked for may end with the home connection sooner than the client notices: only who is heard
// over that connection may believe in it.
func (m *Machine) endsWithHome(c *Call) bool {
	return c.Req.Has&subjects.HasGrace != 0 && int64(c.Req.Grace) < m.session.lease
}

// laneTo gives what is known of the lane to a node. Nodes that come and go are forgotten.
func (m *Machine) laneTo(now int64, node string) *lane {
	l := m.lanes[node]
	if l == nil {
		maps.DeleteFunc(m.lanes, func(_ string, l *lane) bool { return l.number == 0 && now >= l.rest && now-l.since > laneWindow })
		l = &lane{node: node}
		m.lanes[node] = l
	}
	return l
}

// openLane asks for a lane, if there is a slot.
func (m *Machine) openLane(l *lane) {
	for i := range m.slots {
		if m.slots[i].lane == nil {
			m.slots[i].lane, l.number = l, i+1
			m.act(Action{Kind: OpenLane, Lane: l.number, Node: l.node, Reply: laneReplies(l.number, "*")})
			return
		}
	}
}

// LaneOpened says that there is a lane, as an OpenLane action wanted, and that it listens to its inbox.
func (m *Machine) LaneOpened(now int64, number int) {
	m.tickHolds(now)
	s := &m.slots[number-1]
	l := s.lane
	l.open, l.opened, l.used, l.doubt = true, now, now, 0
	m.lanesDue = min(m.lanesDue, now+laneIdle)
	if s.home {
		s.home = false
		m.act(Action{Kind: Unlisten, Reply: laneReplies(number, "*")})
	}
}

// LaneLost says that a lane could not be had, or has broken: what was sent over it and is not answered is sent again.
func (m *Machine) LaneLost(now int64, number int) {
	m.tickHolds(now)
	l := m.slots[number-1].lane
	if l.open && now-l.opened >= laneGood {
		l.fails = 0
	}
	l.rest = now + m.jitter(min(laneRest<<min(l.fails, 10), laneMaxRest))
	l.fails++
	m.leaveLane(now, l)
}

// leaveLane goes on without a lane.
func (m *Machine) leaveLane(now int64, l *lane) {
	s := &m.slots[l.number-1]
	if l.open && !s.home {
		s.home = true
		m.act(Action{Kind: Listen, Reply: laneReplies(l.number, "*")})
	}
	s.lane = nil
	l.number, l.open, l.asked = 0, false, 0
	for _, c := range m.session.flight.all() {
		if c.list == &m.session.flight && c.state == flying && c.lane == l {
			m.send(now, c)
		}
	}
}

// tickLanes closes the lanes that nobody needs.
func (m *Machine) tickLanes(now int64) {
	if now < m.lanesDue {
		return
	}
	m.lanesDue = Never
	for i := range m.slots {
		l := m.slots[i].lane
		switch {
		case l == nil || !l.open:
		case now-l.used >= laneIdle:
			l.fails = 0
			m.leaveLane(now, l)
			m.act(Action{Kind: CloseLane, Lane: i + 1})
		default:
			m.lanesDue = min(m.lanesDue, l.used+laneIdle)
		}
	}
}

// strayed takes a call back that a lane has brought to the wrong place; calls of its bucket go over the home connection until
// its primary is known again. It says whether a lane was to blame.
func (m *Machine) strayed(c *Call) bool {
	if c.lane == nil {
		return false
	}
	c.lane = nil
	if at := m.homes[c.bucket]; at != nil {
		at.astray = true
	}
	return true
}

// doubtLane leaves a lane alone for a while over which a request was not answered in time: it may stand still, which its pings
// find out later.
func (m *Machine) doubtLane(now int64, c *Call) {
	if c.lane != nil && !c.waits() {
		c.lane.doubt = now + laneRest
	}
}
