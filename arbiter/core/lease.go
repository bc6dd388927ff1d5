package core

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/opencluster/oclocks/internal/mutant"
)

const maxLease = uint64(3600 * 1e9) // one hour, as in Config

// nodeLease is what the leader knows of a node that asked it for a lease.
type nodeLease struct {
	raft    uint64
	until   int64 // it has ended from then on
	heard   int64
	floor   uint64 // nothing is granted with an older index than that
	alarmed bool   // its digest was found wrong
	note    []byte
}

// fence keeps some nodes from getting leases until a proposal that relies on their leases having ended is applied.
type fence struct {
	id      uint64 // of the proposal
	numbers []uint64
}

// noteAsk notes that a node asked, and that its state has come apart if it has.
func (n *Node) noteAsk(from uint64, a *ask) {
	l := n.lead.leases[a.Number]
	if l == nil {
		if len(n.lead.leases) >= maxMembers {
			return
		}
		l = &nodeLease{}
		n.lead.leases[a.Number] = l
	}
	l.raft, l.heard, l.note = from, n.now, slices.Clone(a.Note)
	want, known := n.lead.digestAt(a.Change)
	differs := known && want != a.Digest
	if differs && !l.alarmed {
		n.out.Events = append(n.out.Events, Quarantine{Number: a.Number, Raft: from, Change: a.Change, Have: a.Digest, Want: want})
	}
	if known {
		l.alarmed = differs
	}
}

// grant fills in the answer to somebody who asked for a lease, or says that there is none.
func (n *Node) grant(w waitingAsk, a *answer) bool {
	l := n.lead.leases[w.ask.Number]
	if l == nil || !n.isMember(w.from) {
		return false
	}
	if a.Index < l.floor && !mutant.On(mutant.FloorForgotten) || n.fenced(w.ask.Number) {
		return false // it asks again soon, and then the index will be high enough
	}
	switch {
	case l.raft != w.from:
		a.Why = "another node asks under this number"
	case l.alarmed:
		a.Why = "its state differs from the leader's at the same change"
	case n.outvoted():
		a.Why = "the leader's state differs from that of most voters"
	case n.cfg.MayLease != nil:
		if err := n.cfg.MayLease(w.ask.Number, w.from); err != nil {
			a.Why = clip(err.Error())
		}
	}
	if a.Why == "" {
		l.until = max(l.until, n.now+n.cfg.Lease)
		a.Lease = uint64(n.cfg.Lease)
		a.Live = uint64(n.live())
	}
	return true
}

// outvoted says that this leader's state differs from that of most voters, so that it must be this one that has come apart.
func (n *Node) outvoted() bool {
	differ := 0
	for _, id := range n.conf.Voters {
		if n.apart(id) {
			differ++
		}
	}
	return differ > len(n.conf.Voters)/2
}

// apart says that the member's state differs from this leader's.
func (n *Node) apart(id uint64) bool {
	for _, l := range n.lead.leases { // order: any will do
		if l.raft == id && l.alarmed {
			return true
		}
	}
	return false
}

// clip makes a text fit into an answer, and not empty.
func clip(text string) string {
	if text == "" {
		return "refused"
	}
	if len(text) > MaxRefusal {
		text = text[:MaxRefusal]
		for !utf8.ValidString(text) && len(text) > MaxRefusal-utf8.UTFMax {
			text = text[:len(text)-1]
		}
	}
	return strings.Clone(text)
}

func (n *Node) live() int {
	count := 0
	for _, l := range n.lead.leases { // order: counted
		if l.until > n.now {
			count++
		}
	}
	return count
}

func (n *Node) fenced(number uint64) bool {
	return slices.ContainsFunc(n.lead.fences, func(f *fence) bool { return slices.Contains(f.numbers, number) })
}

// ended says that no lease of that node counts any more, whoever granted it.
func (n *Node) ended(number uint64) bool {
	l := n.lead.leases[number]
	return n.now >= n.lead.takeFrom && (l == nil || n.now >= l.until)
}

// raise sets up a fence; lower takes it down once the proposal is at index, or (index 0) not in the log at all.
func (n *Node) raise(id uint64, numbers []uint64) {
	if len(numbers) > 0 {
		n.lead.fences = append(n.lead.fences, &fence{id, slices.Clone(numbers)})
	}
}

func (n *Node) lower(id, index uint64) {
	n.lead.fences = slices.DeleteFunc(n.lead.fences, func(f *fence) bool {
		if f.id != id {
			return false
		}
		for _, number := range f.numbers {
			l := n.lead.leases[number]
			if l == nil {
				l = &nodeLease{}
				n.lead.leases[number] = l
			}
			l.floor = max(l.floor, index)
		}
		return true
	})
}

// holder is this node as one that asks for leases.
type holder struct {
	number uint64 // 0: it does not ask
	note   []byte
	due    int64 // when to ask next
	sent   []sentAsk
	until  int64 // of what was granted, counted from its own sending
	grant  *grant
	why    string // the refusal told last
}

type sentAsk struct {
	id uint64
	at int64
}

// grant is a lease that counts once everything up to index is applied.
type grant struct {
	until int64
	index uint64
	live  int
}

const maxSentAsks = 16

// Identify says under which number this node asks for leases from now on, and what to tell the leader with each; number 0:
// it asks for none. Errors wrap ErrConfig.
func (n *Node) Identify(number uint64, note []byte) error {
	if len(note) > MaxNote {
		return n.refuse(ErrConfig, "a note of %d bytes, at most %d are allowed", len(note), MaxNote)
	}
	if number != n.holder.number {
		n.holder.due = n.now
	}
	n.holder.number, n.holder.note = number, slices.Clone(note)
	return nil
}

func (n *Node) leaseDue() int64 {
	if n.holder.number == 0 || n.elect.leader == 0 || !n.isMember(n.cfg.ID) || n.out.Restore != nil {
		return Never
	}
	return n.holder.due
}

// leaseTick asks the leader, and remembers when.
func (n *Node) leaseTick() {
	h := &n.holder
	if n.now < n.leaseDue() {
		return
	}
	h.due = n.now + n.cfg.Renew
	a := ask{ID: n.nextAsk(), Lease: true, Number: h.number, Change: n.change, Digest: n.digest, Note: h.note}
	if len(h.sent) >= maxSentAsks {
		h.sent = h.sent[1:]
	}
	h.sent = append(h.sent, sentAsk{a.ID, n.now})
	n.sendAsk(&a)
}

// sendAsk gives it to the leader, which may be this node.
func (n *Node) sendAsk(a *ask) {
	if n.elect.leads {
		n.receiveAsk(n.cfg.ID, a)
		return
	}
	n.post(n.elect.leader, encodeAsk(n.cfg.ID, n.elect.leader, a))
}

// nextAsk numbers what this node asks. A process that is started again must not take an answer meant for the one before,
// since it would count the lease from a later sending: so the life is in the number.
func (n *Node) nextAsk() uint64 {
	n.reads.lastAsk++
	return n.cfg.Life<<32 | n.reads.lastAsk&(1<<32-1)
}

// receiveAnswer takes what the leader answers.
func (n *Node) receiveAnswer(_ uint64, a *answer) {
	if n.reads.answered(a) {
		return
	}
	h := &n.holder
	i := slices.IndexFunc(h.sent, func(s sentAsk) bool { return s.id == a.ID })
	if i < 0 {
		return // too old, or of an earlier life
	}
	at := h.sent[i].at
	h.sent = slices.Delete(h.sent, 0, i+1)
	if a.Lease == 0 {
		if a.Why != h.why {
			h.why = a.Why
			n.out.Events = append(n.out.Events, Refusal{Why: a.Why})
		}
		return
	}
	if mutant.On(mutant.LeaseFromReceipt) {
		at = n.now
	}
	until := at + int64(a.Lease)/4*3
	if mutant.On(mutant.WholeLease) {
		until = at + int64(a.Lease)
	}
	if until > h.until {
		h.until, h.why = until, ""
		h.grant = &grant{until: until, index: a.Index, live: int(a.Live)}
	}
}

// settleLease tells of the lease once what it came with is applied.
func (n *Node) settleLease() {
	g := n.holder.grant
	if g == nil || n.applied < g.index && !mutant.On(mutant.LeaseBeforeChange) {
		return
	}
	n.holder.grant = nil
	if g.until > n.now {
		n.out.Events = append(n.out.Events, Granted{Until: g.until, Under: n.change, Live: g.live})
	}
}
