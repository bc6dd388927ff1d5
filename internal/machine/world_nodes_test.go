package machine

import (
	"strings"
	"time"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

// simNode is a broker of the world.
type simNode struct {
	name string
	up   bool
	life int   // rises when it dies
	deaf int64 // until then it stands still: what reaches it is lost
}

// simBucket is where a bucket is.
type simBucket struct {
	primary *simNode        // nil while it has none
	before  *simNode        // the one before; if it stands still it listens still
	movedAt int64           // when it got its primary
	replied []bucket.Effect // the newest replies: a new primary gives them again
}

// promote gives a bucket a primary: all leases start in full, and what the old primary may not have sent is sent again.
func (w *world) promote(b int, n *simNode) {
	w.term++
	w.change++
	at := &w.buckets[b]
	at.primary, at.movedAt = n, w.now
	w.logf("%v bucket %d is with %s in epoch %d", time.Duration(w.now), b, n.name, w.term)
	var out bucket.Output
	if err := w.tables[b].Promote(w.wall(), bucket.Term{Epoch: uint64(w.term), Term: w.term}, 0, &out); err != nil {
		panic(err)
	}
	replied := at.replied
	w.perform(b, out.Effects)
	for _, e := range replied {
		if w.draw(2) == 0 {
			w.replyFrom(n, e.To, e.Body)
		}
	}
}

// vacate takes a bucket from its primary; some time later another node has it.
func (w *world) vacate(b int, d int64) {
	at := &w.buckets[b]
	old := at.primary
	at.primary, at.before = nil, old
	w.logf("%v bucket %d has no primary", time.Duration(w.now), b)
	w.after(d, func() { w.takeOver(b, old) })
}

func (w *world) takeOver(b int, old *simNode) {
	n := w.someNode()
	if n == nil || n == old {
		w.after(simLease/50, func() { w.takeOver(b, nil) })
		return
	}
	w.promote(b, n)
}

// someNode is any node that lives and does not stand still, nil if there is none.
func (w *world) someNode() *simNode {
	var good []*simNode
	for _, n := range w.nodes {
		if n.up && n.deaf <= w.now {
			good = append(good, n)
		}
	}
	if len(good) == 0 {
		return nil
	}
	return good[w.draw(len(good))]
}

// handOver moves a bucket in an orderly way, which takes a moment.
func (w *world) handOver(b int) {
	if w.buckets[b].primary != nil {
		w.vacate(b, int64(w.draw(int(simLease/100))))
	}
}

// lose takes all buckets of a node from it.
func (w *world) lose(n *simNode) {
	for b := range w.buckets {
		if w.buckets[b].primary == n {
			w.vacate(b, int64(w.draw(int(w.longest))))
		}
	}
}

// kill ends a node; it comes back with nothing. Clients hear of it soon, or not at all.
func (w *world) kill(n *simNode) {
	if !n.up {
		return
	}
	w.logf("%v %s dies", time.Duration(w.now), n.name)
	n.up, n.deaf = false, 0
	n.life++
	w.lose(n)
	for _, c := range w.clients {
		c.breakLane(c.laneTo(n))
		switch {
		case c.node == n:
			c.disconnect()
		case w.draw(2) == 0:
			c.deliver(nil, func(now int64) { c.m.ServerDown(now, n.name) })
		}
	}
	w.after(int64(w.draw(int(2*simLease))), func() { n.up = true })
}

// freeze stops a node for a while. Its lease ends, and others take its buckets.
func (w *world) freeze(n *simNode) {
	if !n.up || n.deaf > w.now {
		return
	}
	n.deaf = w.now + int64(w.draw(int(2*simLease)))
	w.logf("%v %s stands still until %v", time.Duration(w.now), n.name, time.Duration(n.deaf))
	w.lose(n)
	for _, c := range w.clients {
		if c.node == n { // its pings are not answered
			w.after(int64(w.draw(int(simLease/2))), func() {
				if c.node == n {
					c.disconnect()
				}
			})
		}
	}
}

// route brings a request to the primary of its bucket, or to whoever listens for it.
func (w *world) route(c *simClient, b int, in *bucket.Input) {
	at := &w.buckets[b]
	fresh := w.now-at.movedAt < simLease/50
	switch {
	case at.before != nil && at.before.deaf > w.now && w.draw(2) == 0:
		// It listens still, and is given its share.
	case at.primary == nil:
		w.unreachable(c, in.Reply)
	case fresh && w.draw(4) == 0:
		to := w.bucketMap()
		if w.draw(2) == 0 {
			to.Change-- // a node that is behind
		}
		w.reply(in.Reply, &subjects.Refusal{Code: 421, Reason: subjects.ReasonMoved, Map: to})
	case at.primary.deaf > w.now:
	default:
		w.step(b, in)
	}
}

func (w *world) bucketMap() *subjects.Map {
	to := &subjects.Map{Change: w.change}
	for b := range w.buckets {
		name := ""
		if n := w.buckets[b].primary; n != nil {
			name = n.name
		}
		to.Primary = append(to.Primary, name)
	}
	return to
}

// unreachable is what the NATS server says if nobody listens.
func (w *world) unreachable(c *simClient, reply string) {
	id := replyID(reply)
	_, token, _ := strings.Cut(reply, ".")
	keep := token[0] == 'k'
	c.deliverTo(token, nil, func(now int64) {
		if keep {
			c.m.KeepRefused(now, id, nobodyListens)
			return
		}
		c.m.Unreachable(now, id)
	})
}

// keepAlive brings a keep-alive to a node, or to all of them.
func (w *world) keepAlive(c *simClient, node, reply string, s bucket.Session, beat uint64) {
	heard := false
	for _, n := range w.nodes {
		if !n.up || node != "" && node != n.name {
			continue
		}
		heard = true
		if n.deaf <= w.now {
			w.keep(n, node != "", reply, s, beat)
		}
	}
	if !heard {
		w.unreachable(c, reply)
	}
}

func (w *world) keep(n *simNode, asked bool, reply string, s bucket.Session, beat uint64) {
	k := subjects.Kept{Node: n.name, Beat: beat, Lease: s.Lease}
	if !w.totals {
		k.Buckets = []subjects.KeptBucket{}
	}
	for b, t := range w.tables {
		if w.buckets[b].primary != n {
			continue
		}
		count, hash, known, refusal := t.Keep(w.wall(), simZone, s, beat)
		if refusal != nil {
			w.replyFrom(n, reply, refusal)
			return
		}
		asked = asked || known
		k.Count += count
		k.Hash ^= hash
		if count > 0 && !w.totals {
			k.Buckets = append(k.Buckets, subjects.KeptBucket{Bucket: uint32(b), Epoch: t.Term().Epoch, Count: count, Hash: hash})
		}
	}
	if asked {
		w.replyFrom(n, reply, &k)
	}
}

// everywhere tells all buckets that have a primary.
func (w *world) everywhere(in *bucket.Input) (all bool) {
	all = true
	for b := range w.tables {
		if n := w.buckets[b].primary; n == nil || n.deaf > w.now {
			all = false
			continue
		}
		in := *in
		w.step(b, &in)
	}
	return all
}

// closeSession is whole for each bucket, and repeated if it is not for all.
func (w *world) closeSession(in *bucket.Input) {
	reply := in.Reply
	in.Reply = ""
	if !w.everywhere(in) {
		w.reply(reply, &subjects.Refusal{Code: 503, Reason: subjects.ReasonUnavailable})
		return
	}
	w.reply(reply, &subjects.SessionClosed{})
}
