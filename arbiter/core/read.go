package core

import (
	"maps"
	"slices"
)

// reads of this node: linearizable, by asking the leader.
type reads struct {
	waiting map[uint64]*read
	lastAsk uint64 // of reads and leases
	ask     uint64 // the ask that is under way, 0: none
	due     int64  // when to ask again
}

type read struct {
	ask   uint64 // the ask that it waits for; 0: none yet
	index uint64 // told by the leader
	known bool
}

// ReadIndex asks for everything that is committed now; Output.Reads tells when the FSM has it. It is repeated until then or
// until Abandon. Errors wrap ErrBusy.
func (n *Node) ReadIndex(id uint64) error {
	if len(n.reads.waiting) >= maxReads {
		return n.refuse(ErrBusy, "%d reads wait", len(n.reads.waiting))
	}
	return n.input(func() error {
		n.reads.waiting[id] = &read{}
		if n.reads.ask == 0 {
			n.askReads()
		}
		return nil
	})
}

// AbandonRead says that nobody waits for a read any more.
func (n *Node) AbandonRead(id uint64) { delete(n.reads.waiting, id) }

// askReads asks the leader for all that wait.
func (n *Node) askReads() {
	r := &n.reads
	r.ask, r.due = 0, Never
	if n.elect.leader == 0 || !n.isMember(n.cfg.ID) {
		return // the next leader is asked
	}
	var id uint64
	for _, w := range r.waiting { // order: all alike
		if w.known {
			continue
		}
		if id == 0 {
			id = n.nextAsk()
		}
		w.ask = id
	}
	if id == 0 {
		return
	}
	r.ask, r.due = id, n.now+n.cfg.Election
	n.sendAsk(&ask{ID: id})
}

func (n *Node) readTick() {
	if n.now >= n.readDue() {
		n.askReads()
	}
}

func (n *Node) readDue() int64 {
	if len(n.reads.waiting) == 0 || n.elect.leader == 0 {
		return Never
	}
	return n.reads.due
}

// hurry asks again at once: there is another leader.
func (r *reads) hurry() { r.ask, r.due = 0, 0 }

// answered takes the answer to an ask for reads.
func (r *reads) answered(a *answer) bool {
	if a.ID != r.ask || r.ask == 0 {
		return false
	}
	for _, w := range r.waiting { // order: all alike
		if w.ask == a.ID && !w.known {
			w.known, w.index = true, a.Index
		}
	}
	r.ask, r.due = 0, 0 // those that came in between are asked for next
	return true
}

// settleReads gives those reads whose index is applied.
func (n *Node) settleReads() {
	if len(n.reads.waiting) == 0 {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(n.reads.waiting)) {
		if w := n.reads.waiting[id]; w.known && n.applied >= w.index {
			delete(n.reads.waiting, id)
			n.out.Reads = append(n.out.Reads, Read{ID: id, Change: n.change})
		}
	}
}
