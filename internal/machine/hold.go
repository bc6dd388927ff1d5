package machine

import (
	"fmt"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// State is what a client may believe of a lock.
type State uint8

// The states of a hold.
const (
	Pending  State = iota // not granted, or granted and not proved to exist still
	Held                  // trusted
	Suspect               // trusted still, but a keep-alive or renewal is overdue
	Lost                  // not trusted any more, for ever
	Released              // given back
)

// String is the state's word.
func (s State) String() string {
	return [...]string{"pending", "held", "suspect", "lost", "released"}[s]
}

// active is the phase of a hold that is trusted until its end; State tells whether it is Held or Suspect by then.
const active = Held

// Hold is one lock as the client sees it. Its fields are valid once the acquire has finished; the machine writes them, and
// callers read them under the lock that guards the machine.
type Hold struct {
	Owner any
	Grant subjects.Grant    // as of the newest answer
	Why   *subjects.Refusal // Lost: why

	phase   State // Pending, active, Lost or Released
	kind    subjects.Kind
	grace   int64
	lease   int64  // connection: what a keep-alive brings
	ttl     int64  // time limit; 0 for none
	heard   int64  // connection: sending of the newest message that the broker is known to have heard
	counted int64  // sending of the request from which the time limit counts
	cut     int64  // the connection broke, and a short grace ends the trust here; 0 if not
	limit   int64  // a renew under way may have set a shorter time limit, which ends the trust here; 0 if not
	terms   uint64 // counts the renews that set the time limit
	learned int64  // when the grant arrived
	life    uint64 // session.life of the acquire
	forced  bool

	home      *home
	list      holdList
	index     int    // in the list
	acquire   *Call  // Pending: waits for the proof
	renewing  *Call  // the machine's own renew
	extension *Call  // the newest renew that sets the time limit
	doubted   bool   // queued in Machine.doubted
	doubtedAt int64  // what was sent then or later and is answered removes the doubt
	askAt     int64  // static: when to renew
	number    uint64 // of its acquire; 0 if that is not known
	releasing *Call
	releaseAt int64 // ghost: when to release what was lost
	goneAt    int64 // ghost: when the broker's answer came; lost by its word: when it is over there at the latest; 0 before
}

// holdList says where the machine keeps a hold.
type holdList uint8

const (
	nowhere  holdList = iota
	inHolds           // counts with the broker, and the client wants it
	inGhosts          // may count with the broker, though the client has given it up
)

func (h *Hold) connection() bool { return h.kind == subjects.Connection }

// counts says whether the hold's primary counts it for the session: all that were acquired in it, static ones too.
func (m *Machine) counts(h *Hold) bool { return h.life == m.session.life }

// renewed says whether the hold is kept by renew, at half of its time limit.
func (h *Hold) renewed() bool { return h.kind == subjects.Static && h.ttl > 0 }

// begin takes the grant. sessionLease is used if the grant names none.
func (h *Hold) begin(c *Call, g *subjects.Grant, sessionLease int64) {
	h.Grant, h.number = *g, c.Req.Number
	h.kind = c.holdKind()
	if h.connection() {
		h.lease = int64(g.Lease)
		if h.lease == 0 || h.lease > sessionLease && sessionLease > 0 { // longer: it is from before the session came back, see shorten
			h.lease = sessionLease
		}
		h.grace = h.lease
		if c.Req.Has&subjects.HasGrace != 0 {
			h.grace = int64(c.Req.Grace)
		}
	}
	h.ttl = int64(g.TTL)
	h.heard, h.counted = c.first, c.first
}

// reset makes a hold that was never trusted as new.
func (h *Hold) reset() { *h = Hold{Owner: h.Owner} }

// span is what the trust is a part of: the lease, or the time limit of a hold that is kept by renew.
func (h *Hold) span() int64 {
	if h.renewed() {
		return h.ttl
	}
	return h.lease
}

// end is when the trust is over: 3/4 of the lease after the newest proof, 3/4 of the time limit after it was counted.
func (h *Hold) end() int64 {
	end := int64(Never)
	if h.connection() {
		end = h.heard + threeQuarters(h.lease)
	}
	if h.ttl > 0 {
		end = min(end, h.counted+threeQuarters(h.ttl))
	}
	if h.cut != 0 {
		end = min(end, h.cut)
	}
	if h.limit != 0 {
		end = min(end, h.limit)
	}
	return end
}

// half is when a proof is asked for; Never for what needs none.
func (h *Hold) half() int64 {
	switch {
	case h.connection():
		return h.heard + h.lease/2
	case h.renewed():
		return h.counted + h.ttl/2
	}
	return Never
}

// doubtful is when a proof that was asked for is overdue: a sixteenth of the lease after half of it.
func (h *Hold) doubtful() int64 {
	switch {
	case h.connection():
		return min(h.heard+h.lease/2+h.lease/16, h.end())
	case h.renewed():
		return min(h.counted+h.ttl/2+h.ttl/16, h.end())
	}
	return h.end()
}

// State is the hold's state at a time.
func (h *Hold) State(now int64) State {
	switch {
	case h.phase != active:
		return h.phase
	case now >= h.end():
		return Lost
	case now >= h.doubtful():
		return Suspect
	}
	return Held
}

// Left is how long the hold may be trusted if nothing more is heard, 0 if no longer, and a negative number if for ever.
func (h *Hold) Left(now int64) time.Duration {
	if h.phase != active {
		return 0
	}
	if end := h.end(); end != Never {
		return time.Duration(max(end-now, 0))
	}
	return -1
}

// join puts a hold among those that the client wants.
func (m *Machine) join(now int64, h *Hold) {
	if h.connection() {
		m.need(now)
		m.session.leased++
	}
	h.list, h.index = inHolds, len(m.holds)
	m.holds = append(m.holds, h)
}

// leave takes a hold out of those.
func (m *Machine) leave(h *Hold) {
	if h.list != inHolds {
		return
	}
	m.holds = remove(m.holds, h)
	if h.connection() {
		m.session.leased--
	}
}

// shorten is called when the session has come back with a shorter lease, since max_lease was made shorter. From now on the broker
// may count by that one, whether it is known to have heard something or not: a keep-alive may arrive whose answer does not.
func (m *Machine) shorten(now int64, h *Hold) {
	h.grace = min(h.grace, m.session.lease)
	if cut := now + threeQuarters(m.session.lease); h.cut == 0 || cut < h.cut {
		h.cut = cut
		m.holdsDue = min(m.holdsDue, h.cut)
	}
}

// remove takes a hold out of its list; the last one takes its place.
func remove(list []*Hold, h *Hold) []*Hold {
	last := len(list) - 1
	list[h.index] = list[last]
	list[h.index].index = h.index
	list[last] = nil
	h.list, h.index = nowhere, 0
	return list[:last]
}

// schedule makes sure that the hold is looked at when its state changes or it is to be renewed.
func (m *Machine) schedule(now int64, h *Hold) {
	m.holdsDue = min(m.holdsDue, h.end())
	switch {
	case h.connection():
		m.session.nextRound = min(m.session.nextRound, max(now, h.half()))
	case h.renewed():
		h.askAt = h.half()
		m.holdsDue = min(m.holdsDue, h.askAt)
	}
}

// tickHolds ends the trust that is over, renews static holds and releases what was lost.
func (m *Machine) tickHolds(now int64) {
	if now < m.holdsDue {
		return
	}
	m.holdsDue = Never
	for i := len(m.holds) - 1; i >= 0; i-- {
		h := m.holds[i]
		if h.phase != active {
			continue // its renew decides
		}
		if now >= h.end() {
			m.loseToTime(now, h)
			continue
		}
		if h.renewed() && h.renewing == nil {
			if now >= h.askAt {
				m.askRenew(now, h, false)
			} else {
				m.holdsDue = min(m.holdsDue, h.askAt)
			}
		}
		m.holdsDue = min(m.holdsDue, h.end())
	}
	for i := len(m.ghosts) - 1; i >= 0; i-- {
		h := m.ghosts[i]
		switch {
		case h.releasing != nil || h.goneAt != 0:
		case now >= h.releaseAt:
			m.sendRelease(now, h, "lost by its client", tidyCall())
		default:
			m.holdsDue = min(m.holdsDue, h.releaseAt)
		}
	}
}

// ended tells of the end of a hold.
func (m *Machine) ended(h *Hold, phase State) {
	h.phase = phase
	m.act(Action{Kind: Change, Hold: h})
}

// loseToTime ends the trust in a hold that the broker may still have. It is released after its whole lease: sooner, and the
// caller, who is being told only now, could still be at work when the next one gets it.
func (m *Machine) loseToTime(now int64, h *Hold) {
	why, of := subjects.WhyExpired, h.lease
	message := "no keep-alive was answered for 3/4 of the lease of %s; the broker may give the lock to somebody else"
	switch {
	case h.cut != 0 && now >= h.cut:
		why, of = subjects.WhyDisconnected, h.grace
		message = "the connection broke, and 3/4 of the grace of %s are over"
	case h.limit != 0 && now >= h.limit:
		of = int64(h.extension.Req.TTL)
		message = "3/4 of the time limit of %s are over, and the renew that set it was not answered"
	case h.ttl > 0 && now >= h.counted+threeQuarters(h.ttl):
		of = h.ttl
		message = "3/4 of the time limit of %s are over, and it was not renewed"
	}
	m.leave(h)
	m.haunt(h)
	h.releaseAt = now + of/4
	m.holdsDue = min(m.holdsDue, h.releaseAt)
	h.Why = told(subjects.ReasonLost, why, fmt.Sprintf(message, time.Duration(of)))
	m.ended(h, Lost)
}

// lose ends a hold of which the broker said that it has ended, or is to end.
func (m *Machine) lose(now int64, h *Hold, why *subjects.Refusal) {
	m.leave(h)
	if h.phase == Pending {
		m.buryUntrusted(now, h)
		m.disproved(now, h, Result{Refusal: why})
		return
	}
	h.Why = why
	// A recovery may undo that, too. Should the broker count it again, it is released, but not before its caller had the time to
	// stop that a force gives: it ends as the trust would have.
	h.goneAt = now + h.span()
	m.buried.add(h)
	m.ended(h, Lost)
}

// haunt keeps a hold in mind that may still count with the broker.
func (m *Machine) haunt(h *Hold) {
	h.list, h.index = inGhosts, len(m.ghosts)
	m.ghosts = append(m.ghosts, h)
}

// releaseSettled takes the last word about the release of a hold.
func (m *Machine) releaseSettled(now int64, c *Call, r Result) {
	h := c.about
	again := h.buried()
	m.gone(now, h)
	m.finish(c, r)
	if again && r.Refusal != nil && c.Req.Op == subjects.OpRelease {
		m.cancelBuried(now, h, r.Refusal)
	}
}

// gone says that the broker has answered the release of a hold. A keep-alive that is unanswered may still count it.
func (m *Machine) gone(now int64, h *Hold) {
	h.releasing = nil
	switch {
	case h.list == inGhosts:
	case h.buried():
		h.goneAt = now
		return
	case h.list == nowhere && h.home != nil && h.phase == Pending: // see stray
		h.goneAt = now
		m.buried.add(h)
		return
	default:
		return
	}
	h.goneAt = now
	m.buried.add(h)
	if !m.session.owed || !m.needed() || len(m.ghosts) > maxGhosts {
		m.exorcise()
	}
}

// maxGhosts bounds the released holds that are kept for the comparison with unanswered keep-alives. Beyond, a comparison
// may fail for a hold that is not there, and then the others are asked for one by one.
const maxGhosts = 4096

// Release gives a hold back, with a text for the history, by a call that has an owner and an empty request: its Finish says that the
// broker has confirmed. It is false if there is nothing to release because the hold is over.
func (m *Machine) Release(now int64, h *Hold, outcome string, c *Call) bool {
	m.tickHolds(now)
	switch {
	case h.phase == active, h.phase == Pending && h.list == inHolds:
		m.leave(h)
		m.haunt(h)
		m.ended(h, Released)
	case h.phase == Lost && h.list == inGhosts && h.releasing == nil && h.goneAt == 0: // lost to time
	case h.phase == Lost && h.forced: // confirms that the caller has stopped
		h.forced = false
	default:
		return false
	}
	m.sendRelease(now, h, outcome, c)
	return true
}

// tidyCall is a call of the machine's own.
func tidyCall() *Call { return &Call{Req: &subjects.Request{}, role: toTidy} }

// sendRelease has the broker end a hold. One without a key, whose acquire was cancelled or refused, is cancelled.
func (m *Machine) sendRelease(now int64, h *Hold, outcome string, c *Call) {
	if h.Grant.Key == 0 {
		m.sendCancel(now, h, h.Grant.Token, c)
		return
	}
	c.Req.Op, c.Req.Name, c.Req.Key, c.Req.Outcome = subjects.OpRelease, h.Grant.Name, h.Grant.Key, outcome
	c.about, h.releasing = h, c
	m.start(now, c)
}

// sendCancel has the broker end a hold by the number of its acquire; the token is 0 if it is not known of which grant.
func (m *Machine) sendCancel(now int64, h *Hold, token uint64, c *Call) {
	c.Req.Op, c.Req.Name, c.Req.Number = subjects.OpCancel, h.Grant.Name, h.number
	if c.Req.Token = token; token != 0 {
		c.Req.Has |= subjects.HasToken
	}
	c.about, h.releasing = h, c
	m.start(now, c)
}
