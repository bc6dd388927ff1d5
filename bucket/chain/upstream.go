package chain

import "github.com/opencluster/oclocks/internal/mutant"

// upstream is this copy's end of the link to the one before it. It begins anew with every view, because only what was
// compared under a view says anything about that view's primary.
type upstream struct {
	peer    Member
	matched bool // our history up to verified is that of the view's primary
	// verified: what this copy may confirm. What it has after that is from an older epoch and may be replaced.
	verified uint64
	head     uint64 // the primary had proposed at least up to here
	fresh    bool   // our history is not the beginning of the primary's: a snapshot is wanted

	hello   bool // a Hello is owed
	ack     bool // an Ack is owed
	resend  bool // and something is missing
	helloAt int64
	heardAt int64

	// A change came damaged, or differs from ours: it is asked for once more, with the number again.
	doubt   uint64 // its sequence number, 0 if there is none
	again   uint64
	askedAt int64

	stage *stage
}

// onAppend takes over changes from the copy before this one.
func (r *Replica) onAppend(m *Message) {
	if m.From != r.up.peer || r.up.peer == (Member{}) {
		return
	}
	r.up.heardAt = r.now
	r.up.head = max(r.up.head, m.Head)
	end := m.Prev.Seq + uint64(len(m.Changes))
	switch {
	case r.up.fresh || m.Prev.Seq > r.log.last().Seq:
		r.missing()
		return
	case end < r.log.base.Seq: // an old duplicate
		r.up.ack, r.up.hello = true, r.up.hello || !r.up.matched
		return
	}
	if at, ok := r.log.at(m.Prev.Seq); ok && at != m.Prev {
		r.onOtherPrev(m)
		return
	}
	seq, verdict := r.adopt(m)
	switch verdict {
	case sound:
		end = min(end, r.log.last().Seq)
	case damaged:
		end = seq - 1
	case diverging:
		r.diverged(seq)
		return
	}
	if end >= max(m.Prev.Seq, r.log.base.Seq) {
		r.verify(end, m.Confirmed)
	}
	if r.up.doubt > m.Prev.Seq && r.up.doubt <= end {
		r.up.doubt = 0
	}
	if verdict == damaged {
		r.doubted(m, seq)
	}
}

type verdict uint8

const (
	sound     verdict = iota // everything is in our history now
	damaged                  // a change is not what its hash says, or not the one that we had in this epoch
	diverging                // a change is not the one that our table has
)

// adopt goes through the changes of a message whose Prev is in our history or before its base. It stops at the first one
// that cannot be taken, and gives its number.
func (r *Replica) adopt(m *Message) (uint64, verdict) {
	hash := m.Prev.Hash
	var own []byte
	for i := range m.Changes {
		c := m.Changes[i]
		if c.Prev != hash || c.Seq != m.Prev.Seq+1+uint64(i) || !c.intact() {
			return c.Seq, damaged
		}
		hash = c.Hash
		if c.Seq < r.log.base.Seq {
			continue
		}
		if ours, ok := r.log.at(c.Seq); ok {
			if ours == c.point() || c.Seq > r.up.verified && mutant.On(mutant.OldTailKept) {
				continue
			}
			if c.Seq <= r.up.verified {
				return c.Seq, damaged
			}
			if c.Seq <= max(r.confirmed, r.delivered) {
				return c.Seq, diverging
			}
			r.truncate(c.Seq - 1)
		}
		if r.log.last().Seq-r.confirmed > 2*uint64(r.lim.Pending) {
			return 0, sound // no primary with our limits sends this much; the rest comes again
		}
		// A copy, in one piece for the message: its bytes are parts of what came from the network, which may be large and have
		// changes of many buckets in it, and this one is kept for long.
		if own == nil {
			own = r.blocks.room(size(m.Changes[i:]))
		}
		own = append(own, c.Data...)
		c.Data = own[len(own)-len(c.Data) : len(own) : len(own)]
		r.add(c)
	}
	return 0, sound
}

// verify notes that our history is the primary's up to seq.
func (r *Replica) verify(seq, confirmed uint64) {
	r.up.matched, r.up.hello = true, false
	r.up.verified = max(r.up.verified, seq)
	r.confirmed = max(r.confirmed, min(confirmed, r.up.verified))
	r.up.ack = true
}

// missing asks for what has to come first. Messages overtake each other, so it says nothing about anybody.
func (r *Replica) missing() {
	if r.up.matched {
		r.up.ack, r.up.resend = true, true
		return
	}
	r.up.hello = true
}

// onOtherPrev judges changes that follow a point which our history does not go through.
func (r *Replica) onOtherPrev(m *Message) {
	switch {
	case m.Prev.Seq <= r.up.verified:
		r.doubted(m, m.Prev.Seq)
	case m.Floor:
		r.diverged(m.Prev.Seq) // there is nothing before it that could be sent
	default:
		r.missing() // it overtook the changes that replace ours
	}
}

// doubted asks for a change once more, and at the second time stops this copy. A message that was on its way already, or
// is a duplicate of the first, is no second time: the answer carries the number of the request.
func (r *Replica) doubted(m *Message, seq uint64) {
	switch {
	case r.up.doubt == 0:
		r.up.doubt = seq
		r.up.again++
		r.up.ack = true
		r.up.askedAt = r.now
	case m.Again == r.up.again && seq <= r.up.doubt:
		r.stop(seq, "change %d from %v does not have the hash that it should have, twice", seq, r.up.peer)
	}
}

// diverged means that what this copy has is not the beginning of the primary's history: it was primary itself and had
// gone ahead, or the bucket was recovered without it. Nothing of that was answered, or it was given up with the recovery.
func (r *Replica) diverged(seq uint64) {
	if seq <= r.confirmed {
		r.alert(r.state.Self, seq, "confirmed change %d is not in the history of %v any more", seq, r.view.Primary())
	}
	if r.view.Counts(r.state.Self) {
		r.retire("its history is not the primary's")
		return
	}
	r.up.fresh, r.up.matched, r.up.verified = true, false, 0
	r.up.hello = true
	r.forget()
}

// retire makes a copy leave that others rely on, or may rely on with the next view: it must be known to be out of the chain
// before anything is thrown away.
func (r *Replica) retire(why string) {
	r.stopped = why
	r.leaving = true
	r.leftAt = r.now - r.lim.Resend
}

// stop ends this copy's use: it confirms and answers nothing any more, and asks to be dropped.
func (r *Replica) stop(seq uint64, format string, args ...any) {
	if r.stopped != "" {
		return
	}
	r.alert(r.state.Self, seq, format, args...)
	r.retire(r.out.Alerts[len(r.out.Alerts)-1].Text)
	if r.place == 0 {
		r.Seal(r.view.Epoch) // it cannot drop itself; another copy has to take over
	}
	if r.place < 0 && r.view.Epoch > 0 && !r.shown {
		r.discard()
	}
}

// Unusable tells that this copy's table does not take what the chain has given it: change seq, or the state up to it. The
// copy counts for nothing any more, raises an alert, and begins anew once a view without it is committed; until then its table
// takes nothing. A primary seals itself.
func (r *Replica) Unusable(seq uint64, why string) {
	r.dirty = true
	r.stop(seq, "%s", why)
}

// upward sends what is owed to the copy before this one.
func (r *Replica) upward() {
	u := &r.up
	if u.peer == (Member{}) || !r.open() {
		return
	}
	if u.hello {
		u.hello, u.doubt = false, 0 // all of it is compared anew
		u.helloAt = r.now
		anchor, _ := r.log.at(max(r.confirmed, r.log.base.Seq)) // always in the log: nothing later is compacted
		r.send(u.peer, Message{Kind: Hello, Last: r.log.last(), Anchor: anchor, Fresh: u.fresh})
	}
	if u.ack && (u.matched || u.doubt > 0) && r.leased() {
		m := Message{Kind: Ack, Progress: r.progress(), Confirmed: r.confirmed, Resend: u.resend}
		if u.doubt > 0 {
			m.Again, m.Doubt = u.again, u.doubt
		}
		u.ack, u.resend = false, false
		r.shown = true
		r.send(u.peer, m)
	}
}

// progress is this copy's own, and that of everybody below it. Nobody can have more than what came through here, except
// somebody who was compared before this copy was restarted.
func (r *Replica) progress() []Progress {
	list := &r.given.progress
	*list = append((*list)[:0], Progress{Member: r.state.Self, Seq: r.up.verified})
	if r.down != nil {
		*list = append(*list, r.down.below[:min(len(r.down.below), 2*MaxChain-1)]...)
	}
	return *list
}
