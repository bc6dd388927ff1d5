package bucket

import (
	"slices"
	"strings"
	"time"

	"github.com/opencluster/oclocks/internal/mutant"
	"github.com/opencluster/oclocks/subjects"
)

// Keep restarts the lease of a session in this bucket. It is not a Step, since it changes nothing that is replicated and
// has no effects: the edge adds up what its buckets say and answers once.
//
// count and hash are those of the session's holds here: all of them but forced ones, hash being the XOR of
// subjects.TokenHash of their tokens. known says whether the bucket knows the session at all; who is not known to any
// bucket has nothing. refusal is what to answer instead: the session has ended here, was superseded, or must be opened
// again because its connection was closed. An old token must not keep anything alive then: its client would trust what
// ends with the grace.
func (t *Table) Keep(now Now, zone string, s Session, beat uint64) (
	count int, hash uint64, known bool, refusal *subjects.Refusal,
) {
	if !t.primary || t.broken != nil {
		return 0, 0, false, nil
	}
	t.now.Boot = max(t.now.Boot, now.Boot)
	t.atZone(zone)
	sid, have := t.sessionOf(s.ID)
	t.at = cursor{}
	if have == nil {
		return 0, 0, false, nil
	}
	if refusal = have.over(&s); refusal != nil {
		return 0, 0, true, refusal
	}
	if have.state == sessionDormant {
		return have.count, have.hash, true, nil
	}
	if have.parted && s.opening().compare(have.latest()) == 0 {
		return 0, 0, true, reopen()
	}
	t.hearOf(sid, &s)
	have.beat = max(have.beat, beat)
	if !mutant.On(mutant.KeepAliveForgotten) {
		t.touch(sid)
	}
	return have.count, have.hash, true, nil
}

// Knows says whether Keep has anything to tell about a session. Time alone makes no session known.
func (t *Table) Knows(zone, session string) bool {
	z := t.zoneOf(zone)
	return z != nil && z.known.may(session) && z.sessions[session] != 0
}

// comeBack takes back what the close of its connection has begun for a session.
func (t *Table) comeBack(sid uint32) {
	s := t.sessions.at(sid)
	if !s.parted {
		return
	}
	s.parted = false
	for id := s.holds.first; id != 0; id = t.holds.at(id).snext {
		h := t.holds.at(id)
		if h.more == 0 {
			continue
		}
		if more := t.extras.at(h.more); more.parted != never {
			more.parted = never
			t.wheel.set(timerOf(holdTimer, id))
		}
	}
	for id := s.waits.first; id != 0; id = t.waiters.at(id).snext {
		t.waiters.at(id).parted = never
		t.wheel.set(timerOf(waiterTimer, id))
	}
}

// Stay is for the keep-alive of an opening that no change can tell of now, so that Keep may not hear it: it begins the session's lease anew
// and what is left of the grace after a closed connection, and nothing else. See the package's doc.
func (t *Table) Stay(now Now, zone string, s *Session) {
	if !t.primary || t.broken != nil || !t.Unheard(zone, s) {
		return
	}
	t.now.Boot = max(t.now.Boot, now.Boot)
	sid := t.zoneOf(zone).sessions[s.ID]
	t.touch(sid)
	have := t.sessions.at(sid)
	if !have.parted { // as comeBack: then nothing that it has ends with a connection
		return
	}
	for id := have.holds.first; id != 0; id = t.holds.at(id).snext {
		h := t.holds.at(id)
		if h.more == 0 {
			continue
		}
		if more := t.extras.at(h.more); more.parted != never && more.parted > t.now.Boot {
			more.parted = max(more.parted, t.after(t.grace(h, have)))
			t.wheel.set(timerOf(holdTimer, id))
		}
	}
	for id := have.waits.first; id != 0; id = t.waiters.at(id).snext {
		if w := t.waiters.at(id); w.parted != never && w.parted > t.now.Boot {
			w.parted = max(w.parted, t.after(have.lease))
			t.wheel.set(timerOf(waiterTimer, id))
		}
	}
}

// disconnect begins the grace of everything that lives on a connection.
func (t *Table) disconnect(in *Input) {
	t.atZone(in.Zone)
	if t.at.zone == nil || !in.Conn.known() {
		return
	}
	var sids []uint32
	for sid := t.at.zone.conns[in.Conn]; sid != 0; sid = t.sessions.at(sid).cnext {
		sids = append(sids, sid)
	}
	slices.SortFunc(sids, func(a, b uint32) int { return strings.Compare(t.sessions.at(a).id, t.sessions.at(b).id) })
	// All of them first, since a lock may go from one session of the connection to another.
	for _, sid := range sids {
		t.part(sid)
	}
	for _, sid := range sids {
		t.endWithoutGrace(sid)
	}
}

// part starts the grace of a session's connection holds, and a last lease for its waiters.
func (t *Table) part(sid uint32) {
	s := t.sessions.at(sid)
	if s.state != sessionLive || s.newer != nil {
		return
	}
	s.parted = true
	for id := s.holds.first; id != 0; id = t.holds.at(id).snext {
		t.partHold(id, s)
	}
	for id := s.waits.first; id != 0; id = t.waiters.at(id).snext {
		w := t.waiters.at(id)
		w.parted = min(w.parted, t.after(s.lease))
		t.wheel.set(timerOf(waiterTimer, id))
	}
}

func (t *Table) partHold(id uint32, s *session) {
	h := t.holds.at(id)
	if h.kind() != subjects.Connection {
		return
	}
	more := t.extra(h)
	more.parted = min(more.parted, t.after(t.grace(h, s)))
	t.wheel.set(timerOf(holdTimer, id))
}

// grace is how long a hold of the session survives a closed connection.
func (t *Table) grace(h *hold, s *session) time.Duration {
	if h.is(holdGrace) {
		return t.extras.at(h.more).grace
	}
	return s.lease
}

// maxDisconnect is how large the change of one closed connection may become, in bytes; the timers end the rest at once.
const maxDisconnect = 512 << 10

// endWithoutGrace ends what a closed connection ends at once.
func (t *Table) endWithoutGrace(sid uint32) {
	s := t.sessions.at(sid)
	for id := s.holds.first; id != 0 && len(t.out.Change) < maxDisconnect; {
		h := t.holds.at(id)
		next := h.snext
		if h.more != 0 && t.extras.at(h.more).parted <= t.now.Boot {
			t.endHold(id, whyDisconnected)
		}
		id = next
	}
}
