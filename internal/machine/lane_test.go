package machine

import (
	"strconv"
	"testing"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// laned is a script whose machine is connected to node h and wants a lane after three requests. The session is open, the broker
// has said that name is with node n, and the machine has asked for the lane to it.
func laned(t *testing.T, name string) *script {
	t.Helper()
	s := newScript(t)
	s.m.slots, s.m.cfg.Busy, s.m.conn.Node = make([]slot, 2), 3, "h"
	s.begin(name)
	s.release(s.m.holds[0])
	h := s.taken(name, 0)
	s.noLanes()
	s.release(h)
	return s
}

// withLane is laned, and the lane is there.
func withLane(t *testing.T, name string) *script {
	t.Helper()
	s := laned(t, name)
	s.wants("open n 1.*")
	s.do(func(now int64) { s.m.LaneOpened(now, 1) })
	return s
}

// taken acquires a name; the acquire must go over a lane, or home (0).
func (s *script) taken(name string, lane int) *Hold {
	s.t.Helper()
	h := s.acquire(name, nil)
	s.grant(s.via(subjects.OpAcquire, lane), s.m.ids, func(g *subjects.Grant) { g.Epoch = 7 })
	s.state(h, Held)
	return h
}

// release releases a hold, over whatever.
func (s *script) release(h *Hold) {
	s.t.Helper()
	s.do(func(now int64) { s.m.Release(now, h, "", tidyCall()) })
	s.answer(s.next(subjects.OpRelease), &subjects.Released{})
}

// via takes the oldest message, which must go over a lane, or home (0).
func (s *script) via(op subjects.Op, lane int) sentMessage {
	s.t.Helper()
	msg := s.next(op)
	if msg.lane != lane {
		s.t.Fatalf("%s went over lane %d, expected %d", op, msg.lane, lane)
	}
	return msg
}

func (s *script) noLanes() {
	s.t.Helper()
	if len(s.lanes) > 0 {
		s.t.Fatalf("the machine wants %v, expected nothing", s.lanes)
	}
}

func (s *script) wants(lane string) {
	s.t.Helper()
	if len(s.lanes) == 0 || s.lanes[0] != lane {
		s.t.Fatalf("the machine wants %v, expected %s", s.lanes, lane)
	}
	s.lanes = s.lanes[1:]
}

func TestLaneCarriesTheFirstSendingOnly(t *testing.T) {
	s := laned(t, "a")
	s.wants("open n 1.*")
	s.release(s.taken("a", 0)) // it is not there yet
	s.do(func(now int64) { s.m.LaneOpened(now, 1) })
	s.release(s.taken("a", 1))
	if got := s.m.laneFor(s.now, &Call{Req: &subjects.Request{Op: subjects.OpQuery, Name: "a"}, Raw: true}); got != nil {
		t.Errorf("a request without a session goes over the lane to %s", got.node)
	}
	s.acquire("a", nil)
	s.via(subjects.OpAcquire, 1)
	s.pass(3 * time.Second)
	s.via(subjects.OpAcquire, 0) // after silence
}

func TestLaneLost(t *testing.T) {
	s := withLane(t, "a")
	h := s.acquire("a", nil)
	first := s.via(subjects.OpAcquire, 1)
	s.do(func(now int64) { s.m.LaneLost(now, 1) })
	s.wants("listen 1.*")
	again := s.via(subjects.OpAcquire, 0)
	if first.req.Number != again.req.Number || first.reply != "1."+again.reply {
		t.Errorf("sent again as %d to %s, it was %d to %s", again.req.Number, again.reply, first.req.Number, first.reply)
	}
	s.grant(again, 99, nil)
	s.state(h, Held)
	for range 10 { // it is not tried again at once
		s.release(s.taken("b"+strconv.Itoa(int(s.m.ids)), 0))
	}
	s.release(h)
	s.noLanes()
	s.pass(3 * time.Second)
	s.sent = nil
	for range 3 {
		s.release(s.taken("a", 0))
	}
	s.wants("open n 1.*")
	s.do(func(now int64) { s.m.LaneLost(now, 1) }) // in vain
	s.quiet()
	s.pass(3 * time.Second)
	for range 3 {
		s.release(s.taken("a", 0))
	}
	s.wants("open n 1.*")
	s.do(func(now int64) { s.m.LaneOpened(now, 1) })
	s.wants("unlisten 1.*")
	s.noLanes()
}

// A node that answers only after its lane is gone is heard over the home connection: what it grants to nobody is given back.
func TestLateGrantToLaneThatIsGone(t *testing.T) {
	s := withLane(t, "a")
	h := s.acquire("a", nil)
	first := s.via(subjects.OpAcquire, 1)
	s.grant(first, 99, nil)
	s.do(func(now int64) { s.m.LaneLost(now, 1) })
	s.wants("listen 1.*")
	s.release(h)
	s.grant(first, 100, func(g *subjects.Grant) { g.Key = 5 }) // a recovery has undone both
	if msg := s.via(subjects.OpRelease, 0); msg.req.Key != 5 {
		t.Errorf("the key %x is released, expected that of the second grant", msg.req.Key)
	}
}

// There are no more lanes than slots, and a slot that is free goes to another node, with its inbox.
func TestLaneSlots(t *testing.T) {
	s := laned(t, "a")
	s.m.slots = s.m.slots[:1]
	s.wants("open n 1.*")
	s.do(func(now int64) { s.m.LaneOpened(now, 1) })
	other := "b" // of another bucket
	for s.m.bucketOf(other) == s.m.bucketOf("a") {
		other += "b"
	}
	elsewhere := func() {
		for range 3 {
			h := s.acquire(other, nil)
			s.grant(s.via(subjects.OpAcquire, 0), s.m.ids, func(g *subjects.Grant) { g.Epoch, g.Node = 7, "o" })
			s.state(h, Held)
			s.release(h)
		}
	}
	elsewhere()
	s.noLanes()
	s.do(func(now int64) { s.m.LaneLost(now, 1) })
	s.wants("listen 1.*")
	elsewhere()
	s.wants("open o 1.*")
	s.noLanes()
}

// Nobody listens for the bucket at the end of the lane: whoever is asked over the home connection knows better.
func TestLaneLeadsAstray(t *testing.T) {
	s := withLane(t, "a")
	h := s.acquire("a", nil)
	msg := s.via(subjects.OpAcquire, 1)
	s.do(func(now int64) { s.m.Unreachable(now, replyID("."+msg.reply)) })
	s.acquire("a", nil)
	msg = s.via(subjects.OpAcquire, 0)
	s.via(subjects.OpAcquire, 0)
	s.grant(msg, 99, func(g *subjects.Grant) { g.Epoch, g.Node = 8, "h" })
	s.sent = nil // what waits is sent to the new primary
	s.state(h, Held)
	s.do(func(now int64) { s.m.Release(now, h, "", tidyCall()) })
	s.via(subjects.OpRelease, 0) // h is where the client is connected
}

// A grant that comes over a lane while the home connection is broken is proved when that is back.
func TestLaneIsNotTrustedWithoutHome(t *testing.T) {
	s := laned(t, "a")
	s.do(func(now int64) { s.m.LaneOpened(now, 1) })
	h := s.acquire("a", nil)
	msg := s.via(subjects.OpAcquire, 1)
	s.do(s.m.Disconnected)
	s.pass(time.Millisecond)
	s.grant(msg, 99, nil)
	s.state(h, Pending)
	s.do(func(now int64) { s.m.Connected(now, Conn{Server: "s", CID: 2, Node: "h"}) })
	s.opened(2)
	s.next(subjects.OpKeep)
	s.grant(s.via(subjects.OpRenew, 1), 99, nil)
	s.state(h, Held)
}

// The broker may end such a hold before the client notices that its home connection has ended.
func TestShortGraceGoesHome(t *testing.T) {
	s := laned(t, "a")
	s.do(func(now int64) { s.m.LaneOpened(now, 1) })
	s.acquire("a", func(c *Call) { c.Req.Grace, c.Req.Has = 0, subjects.HasGrace })
	s.via(subjects.OpAcquire, 0)
}

func TestLaneIsClosedWhenIdle(t *testing.T) {
	s := withLane(t, "a")
	s.pass(20 * time.Second)
	s.release(s.taken("a", 1))
	s.acquire("a", nil)
	s.via(subjects.OpAcquire, 1)
	s.pass(29 * time.Second)
	s.noLanes()
	s.sent = nil
	s.pass(time.Second + time.Millisecond)
	s.wants("listen 1.*")
	s.wants("close")
}
