package core

import "time"

// handover is how a leader gives way to a better one. It outlives a term.
type handover struct {
	better uint64 // the best voter that is better than this node, as of the last look; 0: none
	since  int64  // since when it is
	next   int64  // not before
	pause  int64  // after the next attempt
}

// Between two attempts of this node to hand over on its own: doubled each time, up to the longer one.
const (
	handoverPause    = int64(2 * time.Second)
	handoverMaxPause = int64(time.Minute)
)

// prefer hands over if for a while now there has been a voter with a better priority that has everything committed; and at once if this
// node can decide nothing: most are of another opinion, or its store is a copy from before a life that the group has seen, and whatever
// it proposes comes to nothing.
func (n *Node) prefer() {
	h := &n.lead.hand
	if n.outvoted() || n.seen.newerLife(n.cfg.ID, n.cfg.Life) {
		if to := n.best(reluctantPriority + 1); to != 0 {
			n.rn.TransferLeader(to) // again at each heartbeat, until it has come to something
		}
		return
	}
	best := n.best(n.priority(n.cfg.ID))
	if best != h.better {
		h.better, h.since = best, n.now
	}
	settle := 10 * n.cfg.Election
	if n.cfg.Reluctant {
		settle = n.cfg.Election
	}
	if best == 0 || !n.Leading() || n.now < max(max(h.since, n.lead.since)+settle, h.next) {
		return
	}
	if n.now-h.next > 2*handoverMaxPause {
		h.pause = 0
	}
	h.pause = min(max(2*h.pause, handoverPause), handoverMaxPause)
	h.next = n.now + h.pause
	n.rn.TransferLeader(best)
}

// best is the voter to hand leadership to: with a priority number below that, heard of in the last heartbeats, with
// everything that is committed, and of the same opinion as most voters. 0: there is none.
func (n *Node) best(below int) uint64 {
	commit := n.rn.BasicStatus().GetCommit()
	match := n.matches()
	outvoted := n.outvoted()
	list := n.votersBy(func(id uint64) bool {
		if n.apart(id) != outvoted {
			return false
		}
		at, ok := n.heard[id]
		return id != n.cfg.ID && n.priority(id) < below && ok && !n.down[id] && n.now-at <= n.cfg.Election && match[id] >= commit
	})
	if len(list) == 0 {
		return 0
	}
	return list[0]
}

// Transfer asks this leader to hand leadership to a voter, or for 0 to the best other one. It is an attempt: Leadership tells
// what comes of it, within about an election time. Errors wrap ErrNotLeader or ErrMembership.
func (n *Node) Transfer(to uint64) error {
	switch {
	case !n.elect.leads:
		return n.refuse(ErrNotLeader, "a transfer")
	case to == n.cfg.ID:
		return nil
	case to == 0:
		if to = n.best(reluctantPriority + 1); to == 0 {
			return n.refuse(ErrMembership, "no other voter has everything")
		}
	case !n.isVoter(to):
		return n.refuse(ErrMembership, "%x is no voter", to)
	}
	return n.input(func() error {
		n.rn.TransferLeader(to)
		return nil
	})
}
