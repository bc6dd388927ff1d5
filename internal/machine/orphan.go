package machine

import (
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// Orphans are holds that the broker has for the session and the client does not want: it would keep them alive with everything
// else, and nobody would ever get the lock. They come about when a recovery has lost the end of a bucket's history. Then a release
// that was answered has not happened, which the next keep-alive tells, or the end of a hold by force or time; or a waiter that was
// long answered stands in the queue again, and is granted once more, to a call that is over. Either is released (again).
// That grant's message may be lost: then the client does not know its token, but its request's key, by which the first grant
// was released, releases this one.

// maxBuried is how many holds that are over are remembered for that.
const maxBuried = 256

// bury remembers a hold whose release the broker has answered, or which it has ended: what is told of that again is no news.
func (m *Machine) bury(h *Hold) {
	if len(m.buried) < maxBuried {
		m.buried = append(m.buried, h)
		return
	}
	m.buried[m.oldest] = h
	m.oldest = (m.oldest + 1) % maxBuried
}

// revived finds the released holds that a bucket counts again, which explain, with some of those that it may count, what it told.
// It gives what was chosen of may, as choose does.
func (m *Machine) revived(now int64, b sentBeat, at *home, hash uint64, count int, may []*Hold) (chosen uint32, ok bool) {
	all := m.finishedBefore(b, at, append(make([]*Hold, 0, maxOptional), may...), maxOptional)
	if len(all) == len(may) {
		return 0, false
	}
	if chosen, ok = choose(hash, count, all); !ok {
		return 0, false
	}
	for i, h := range all[len(may):] {
		if chosen&(1<<(len(may)+i)) != 0 && h.releasing == nil {
			m.sendRelease(now, h, "released before a recovery", tidyCall())
		}
	}
	return chosen & (1<<len(may) - 1), true
}

// finishedBefore adds to a list, up to its most, the holds of a bucket that were over before a keep-alive was sent, the newest first.
func (m *Machine) finishedBefore(b sentBeat, at *home, list []*Hold, most int) []*Hold {
	for i := range m.buried {
		h := m.buried[(m.oldest+len(m.buried)-1-i)%len(m.buried)]
		if len(list) < most && h.home == at && m.counts(h) && h.list == nowhere && h.goneAt != 0 && h.goneAt < b.at {
			list = append(list, h)
		}
	}
	return list
}

// odd is what a bucket counts beyond all that the client knows, told by keep-alives since a time.
type odd struct {
	hash  uint64
	count int
	since int64
	wait  int64
}

// releaseAgain takes what a bucket counts and nothing explains. Mostly it is a grant that is on its way. If it is told for a
// whole lease, it may be what a request was granted once more whose hold is over: all keys of such requests are released,
// which does nothing to any other hold. Then more rarely, since it may be another process's that has the session's secret.
func (m *Machine) releaseAgain(now int64, b sentBeat, at *home, told odd) {
	switch o := &at.odd; {
	case o.hash != told.hash || o.count != told.count:
		*o = odd{hash: told.hash, count: told.count, since: b.at, wait: m.session.lease}
	case b.at >= o.since+o.wait:
		o.since, o.wait = b.at, min(2*o.wait, int64(time.Hour))
		for _, h := range m.finishedBefore(b, at, nil, maxChecking) {
			if h.releasing == nil {
				m.sendRelease(now, h, "granted once more after a recovery", tidyCall())
			}
		}
	}
}

// lateGrant takes a grant to an acquire of the session that is over. It may be one that was told before.
func (m *Machine) lateGrant(now int64, data []byte) {
	var g subjects.Grant
	if m.closing || g.DecodeJSON(data) != nil {
		return
	}
	for _, list := range [][]*Hold{m.holds, m.ghosts, m.buried} {
		for _, h := range list {
			if h.Grant.Token == g.Token && h.Grant.Name == g.Name && h.Grant.Key != 0 {
				return
			}
		}
	}
	// That of another acquire which is being given back already, or of one that is not settled.
	for _, c := range m.session.flight.all() {
		if c.Result.Grant != nil && c.Result.Grant.Token == g.Token && c.Result.Grant.Name == g.Name || c.Req.Op == subjects.OpRelease && c.Req.Key == g.Key {
			return
		}
	}
	req := &subjects.Request{Op: subjects.OpRelease, Name: g.Name, Key: g.Key, Outcome: "granted to nobody"}
	m.start(now, &Call{Req: req, role: toTidy, about: &Hold{kind: subjects.Static}})
}

// buryCancelled remembers what a cancel has ended, by the broker's answer to it: a recovery may undo that. Mostly no key of it has come.
func (m *Machine) buryCancelled(now int64, c *Call, data []byte) {
	var told subjects.Cancelled
	if c.target.Raw || told.DecodeJSON(data) != nil || told.Token == 0 {
		return
	}
	h := &Hold{
		kind: c.target.holdKind(), home: m.homeOf(m.bucketOf(c.Req.Name)), life: m.session.life, goneAt: now, number: c.Req.Number,
	}
	h.Grant.Name, h.Grant.Token = c.Req.Name, told.Token
	if g := c.target.Result.Grant; g != nil && g.Token == told.Token {
		h.Grant.Key = g.Key
	}
	m.bury(h)
}

// buryUntrusted remembers a hold that the broker has ended before the client could trust it: a recovery may undo that when the acquire,
// and its Hold, have begun anew.
func (m *Machine) buryUntrusted(now int64, h *Hold) {
	m.bury(&Hold{Grant: h.Grant, kind: h.kind, home: h.home, life: h.life, goneAt: now})
}

// replaced ends a hold whose key opens another one by now: a recovery has undone its grant, and the request, which has the key, was
// granted once more, with a token that the client was not told when it began to rely on the first. Nobody wants that one.
func (m *Machine) replaced(now int64, h *Hold) {
	req := &subjects.Request{Op: subjects.OpRelease, Name: h.Grant.Name, Key: h.Grant.Key, Outcome: "granted once more after a recovery"}
	m.start(now, &Call{Req: req, role: toTidy, about: &Hold{kind: subjects.Static}})
	m.lose(now, h, told(subjects.ReasonLost, subjects.WhyExpired, "the grant was lost in a recovery, and its request was granted once more"))
}

// An id of a call that is an acquire of the session, whose grant is to be given back should nobody wait for it, is odd.
func oddIfAcquire(c *Call) uint64 {
	if !c.Raw && c.Req.Op == subjects.OpAcquire && !c.Req.Enqueue {
		return 1
	}
	return 0
}
