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
// was released, releases this one; and if that opens nothing, or if it has been told of no grant at all, a cancel of its request does: see
// doc.go.

// maxBuried is how many holds that are over are remembered for that, and how many requests that brought none.
const maxBuried = 256

// graves are the newest holds that are over.
type graves struct {
	holds  []*Hold
	oldest int // of these, when there are maxBuried
	added  int // so many have come since the beginning
}

// add remembers a hold whose release the broker has answered, or which it has ended: what is told of that again is no news.
func (g *graves) add(h *Hold) {
	g.added++
	if len(g.holds) < maxBuried {
		g.holds = append(g.holds, h)
		return
	}
	g.holds[g.oldest] = h
	g.oldest = (g.oldest + 1) % maxBuried
}

// buried says whether a hold is one of the graves': it is over by the broker's word, and in no list.
func (h *Hold) buried() bool { return h.list == nowhere && h.goneAt != 0 }

// revived finds the released holds that a bucket counts again, which explain, with some of those that it may count, what it told.
// It gives what was chosen of may, as choose does.
func (m *Machine) revived(now int64, b sentBeat, at *home, hash uint64, count int, may []*Hold) (chosen uint32, ok bool) {
	all := m.finishedBefore(b, at, &m.buried, append(make([]*Hold, 0, maxOptional), may...), maxOptional)
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
func (m *Machine) finishedBefore(b sentBeat, at *home, of *graves, list []*Hold, most int) []*Hold {
	for i := range of.holds {
		h := of.holds[(of.oldest+len(of.holds)-1-i)%len(of.holds)]
		if len(list) < most && h.home == at && m.counts(h) && h.buried() && h.goneAt < b.at {
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
	asked [2]int // so many of the buried and of the refused were asked about in this round; see oldest
}

// releaseAgain takes what a bucket counts and nothing explains. Mostly it is a grant that is on its way. If it is told for a whole lease,
// it may be what a request was granted once more whose hold is over, or that was refused: all keys of such requests are released, and all
// that were refused are cancelled, which does nothing to any other hold. With each keep-alive it asks about some more of them, until it
// has been round. Then more rarely, since it may be another process's that has the session's secret.
func (m *Machine) releaseAgain(now int64, b sentBeat, at *home, told odd) {
	o := &at.odd
	if o.hash != told.hash || o.count != told.count {
		*o = odd{hash: told.hash, count: told.count, since: b.at, wait: m.session.lease}
		return
	}
	if b.at < o.since+o.wait {
		return
	}
	round := true
	for i, of := range []*graves{&m.buried, &m.refused} {
		list := m.oldest(at, of, &o.asked[i], o.since+o.wait)
		for _, h := range list {
			m.sendRelease(now, h, "granted once more after a recovery", tidyCall())
		}
		round = round && len(list) < maxChecking
	}
	if round {
		o.since, o.wait, o.asked = b.at, min(2*o.wait, int64(time.Hour)), [2]int{}
	}
}

// cancelBuried cancels the request of a hold that is over and whose key opens nothing: in the history that the recovery went on with
// it may have been granted by another copy of it, which has another key. See doc.go.
func (m *Machine) cancelBuried(now int64, h *Hold, why *subjects.Refusal) {
	if why.Code != 403 && why.Code != 404 || h.number == 0 || !m.counts(h) || m.closing {
		return
	}
	m.sendCancel(now, h, 0, tidyCall())
}

// oldest gives the next holds of a bucket that were over before a time, the oldest first: they are forgotten first, and what a bucket
// counts for long is of a request that is older than that. A program that goes on trying adds newer ones all the time, so the newest would
// be others each time. The first `asked` that were ever remembered have had their turn in this round.
func (m *Machine) oldest(at *home, of *graves, asked *int, before int64) (list []*Hold) {
	first := of.added - len(of.holds)
	for *asked = max(*asked, first); *asked < of.added && len(list) < maxChecking; *asked++ {
		h := of.holds[(of.oldest+*asked-first)%len(of.holds)]
		if h.home == at && m.counts(h) && h.buried() && h.goneAt < before && h.releasing == nil {
			list = append(list, h)
		}
	}
	return list
}

// lateGrant takes a grant to an acquire of the session that is over. It may be one that was told before.
func (m *Machine) lateGrant(now int64, data []byte) {
	var g subjects.Grant
	if m.closing || g.DecodeJSON(data) != nil {
		return
	}
	for _, list := range [][]*Hold{m.holds, m.ghosts, m.buried.holds} {
		for _, h := range list {
			if h.Grant.Token == g.Token && h.Grant.Name == g.Name && h.Grant.Key != 0 {
				return
			}
		}
	}
	// That of another acquire which is being given back already, or of one that is not settled.
	for _, c := range m.session.flight.all() {
		if c.Result.Grant != nil && c.Result.Grant.Token == g.Token && c.Result.Grant.Name == g.Name ||
			c.Req.Op == subjects.OpRelease && c.Req.Key == g.Key {
			return
		}
	}
	m.sendRelease(now, m.stray(&g, subjects.Static), "granted to nobody", tidyCall())
}

// stray is a hold of the session that nobody wants. It is buried when its release is answered.
func (m *Machine) stray(g *subjects.Grant, kind subjects.Kind) *Hold {
	return &Hold{Grant: *g, kind: kind, home: m.homeOf(m.bucketOf(g.Name)), life: m.session.life}
}

// apart is a hold as the broker knows it, without its caller.
func (h *Hold) apart() *Hold {
	return &Hold{Grant: h.Grant, kind: h.kind, home: h.home, life: h.life, number: h.number}
}

// buryCancelled remembers what a cancel has ended, by the broker's answer to it: a recovery may undo that. Mostly no key of it has come.
// The acquire may have been granted in another history than the one in which it was cancelled.
func (m *Machine) buryCancelled(now int64, c *Call, data []byte) {
	var told subjects.Cancelled
	if c.target.Raw || told.DecodeJSON(data) != nil {
		return
	}
	first := c.target.Result.Grant
	if first != nil {
		h := m.stray(first, c.target.holdKind())
		h.goneAt, h.number = now, c.Req.Number
		m.buried.add(h)
	}
	switch {
	case told.Token == 0:
		if !c.target.low { // or the number may be another process's
			m.buryRefused(now, c.target)
		}
	case first == nil || first.Token != told.Token:
		h := m.stray(&subjects.Grant{Name: c.Req.Name, Token: told.Token}, c.target.holdKind())
		h.goneAt, h.number = now, c.Req.Number
		m.buried.add(h)
	}
}

// buryRefused remembers an acquire of the session that is over and brought no hold, as far as the client was told, if another history may
// tell otherwise: see doc.go.
func (m *Machine) buryRefused(now int64, c *Call) {
	if c.Raw || c.Req.Enqueue || c.first == 0 || m.session.token == "" || c.first == c.last && !c.waits() && !c.given {
		return
	}
	h := m.stray(&subjects.Grant{Name: c.Req.Name}, c.holdKind())
	h.goneAt, h.number = now, c.Req.Number
	m.refused.add(h)
}

// buryUntrusted remembers a hold that the broker has ended before the client could trust it: a recovery may undo that when the acquire,
// and its Hold, have begun anew.
func (m *Machine) buryUntrusted(now int64, h *Hold) {
	lost := h.apart()
	lost.goneAt = now
	m.buried.add(lost)
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
