package machine

import "github.com/opencluster/oclocks/subjects"

// Orphans are holds that the broker has for the session and the client does not want: it would keep them alive with everything
// else, and nobody would ever get the lock. They come about when a recovery has lost the end of a bucket's history. Then a release
// that was answered has not happened, which the next keep-alive tells; or a waiter that was long answered stands in the queue
// again, and is granted once more, to a call that is over. Either is released (again).

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
	all := append(make([]*Hold, 0, maxOptional), may...)
	for i := range m.buried { // the newest first
		h := m.buried[(m.oldest+len(m.buried)-1-i)%len(m.buried)]
		if len(all) < maxOptional && h.home == at && m.counts(h) && h.list == nowhere && h.goneAt != 0 && h.goneAt < b.at {
			all = append(all, h)
		}
	}
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

// lateGrant takes a grant to an acquire of the session that is over. It may be one that was told before.
func (m *Machine) lateGrant(now int64, data []byte) {
	var g subjects.Grant
	if m.closing || g.DecodeJSON(data) != nil {
		return
	}
	for _, list := range [][]*Hold{m.holds, m.ghosts, m.buried} {
		for _, h := range list {
			if h.Grant.Token == g.Token && h.Grant.Name == g.Name {
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
