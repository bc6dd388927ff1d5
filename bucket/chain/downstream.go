package chain

// link is this copy's end of the link to the one after it.
type link struct {
	peer  Member
	joins bool // it is not in the chain yet
	state linkState
	hello *Message // its Hello, if that cannot be answered yet

	next  uint64 // the next change to send
	acked uint64 // it has everything up to here
	bytes int    // of the changes between acked and next

	below   []Progress // what it last told of itself and those after it
	told    uint64     // it knows that this much is confirmed
	poke    bool       // send something even if there is nothing new
	floor   bool       // what is sent next begins at the base of our log
	again   uint64     // number of its request to send changes once more
	againAt int64      // when that was done last

	wait    int64  // how long an answer may take, as it was learnt here
	probe   uint64 // the change whose way is being measured, 0 if none is
	probeAt int64

	movedAt int64 // it last made progress, or had nothing to do
	heardAt int64
	sentAt  int64
	snap    *outgoing
}

type linkState uint8

const (
	asking    linkState = iota // it has not said where its history ends
	streaming                  // it gets changes as they come
	copying                    // it gets a snapshot
	refused                    // it would have to get one that is too large
)

func newLink(peer Member, now int64) *link {
	return &link{peer: peer, movedAt: now, heardAt: now, poke: true}
}

// verified is how far this copy's history is known to be that of the view's primary. Only this much is passed on.
func (r *Replica) verified() (uint64, bool) {
	if r.lead != nil {
		return r.log.last().Seq, true
	}
	return r.up.verified, r.up.matched
}

// head is how far the primary has proposed, as far as it is known here.
func (r *Replica) head() uint64 {
	if r.lead != nil {
		return r.log.last().Seq
	}
	return r.up.head
}

// onHello learns where the history of the copy after this one ends.
func (r *Replica) onHello(m *Message) {
	if r.down == nil || m.From != r.down.peer {
		r.onJoin(m) // it believes that it stands behind us: so it wants to
		return
	}
	r.down.heardAt = r.now
	hello := *m // m itself is the caller's, and need not be on the heap
	r.down.hello = &hello
	r.down.state = asking
	r.down.acked, r.down.below = 0, nil
}

// engage decides where to begin with a copy that has said where its history ends.
func (r *Replica) engage() {
	l := r.down
	verified, ok := r.verified()
	if l == nil || l.hello == nil || !ok {
		return
	}
	h := l.hello
	base := r.log.base
	switch {
	case h.Fresh || h.Last.Seq < base.Seq:
		r.copyTo(l)
	case h.Last.Seq <= verified && r.log.has(h.Last):
		l.stream(h.Last.Seq, false, r.now)
	case h.Anchor.Seq < base.Seq:
		l.stream(base.Seq, true, r.now) // it has this number, and will tell if it has another change there
	case h.Anchor.Seq <= verified && r.log.has(h.Anchor):
		l.stream(h.Anchor.Seq, false, r.now)
	case h.Anchor.Seq <= verified || r.beyond(h.Anchor):
		// Its history is another one. That something it knows to be confirmed is not in ours should be looked into: a recovery
		// gave it up, or one of us is wrong. Where there is no change yet, there is nothing to give up: a copy begun anew of
		// what doubling has made begins elsewhere.
		if h.Anchor.Seq > 0 {
			r.alert(l.peer, h.Anchor.Seq, "confirmed change %v of %v is not in the history of %v", h.Anchor, l.peer, r.view.Primary())
		}
		r.copyTo(l)
	}
	// Else it has more than we do, and all of it may be the primary's: wait until we have it too.
}

// beyond says whether a change that somebody knows to be confirmed is after the end of the primary's history. Whoever stands
// behind another copy that is not of the chain may have stood elsewhere before, and know more than is known here. The epoch tells:
// a change of this epoch is the present primary's. One of an earlier epoch was in its history when the epoch began, if ever, and
// no head that was heard under this view is less than what the primary had then.
func (r *Replica) beyond(p Point) bool {
	head := r.head()
	return p.Seq > head && (r.lead != nil || head > 0 && p.Epoch < r.view.Epoch)
}

// stream begins to send the changes after seq.
func (l *link) stream(seq uint64, floor bool, now int64) {
	l.state, l.hello, l.snap = streaming, nil, nil
	l.next, l.acked, l.bytes, l.probe = seq+1, seq, 0, 0
	l.floor, l.poke, l.told = floor, true, 0
	l.movedAt = now
}

// onAck notes what the copies below have.
func (r *Replica) onAck(m *Message) {
	l := r.down
	if l == nil || m.From != l.peer || len(m.Progress) == 0 || m.Progress[0].Member != l.peer {
		return
	}
	l.heardAt = r.now
	l.below, l.told = append(l.below[:0], m.Progress...), m.Confirmed // a copy: the message is the caller's
	r.up.ack = true
	if r.lead != nil {
		r.lead.note(r, m.Progress)
		r.replan = r.replan || r.lead.incomplete(r)
	}
	if l.state != streaming {
		return
	}
	if seq := m.Progress[0].Seq; seq > l.acked {
		l.advance(r, seq)
	}
	switch {
	case m.Again > l.again || m.Again > 0 && m.Again == l.again && r.now-l.againAt >= r.lim.Resend:
		l.again, l.againAt = m.Again, r.now
		r.recheck(m.Doubt)
		l.rewind(min(m.Doubt-1, l.acked))
	case m.Resend && r.now-l.sentAt >= r.lim.Resend/8:
		l.rewind(l.acked)
	}
}

// advance notes that the next copy has everything up to seq. If it has more than was sent on this link, it had that before.
func (l *link) advance(r *Replica, seq uint64) {
	verified, _ := r.verified()
	seq = min(seq, verified)
	if seq <= l.acked {
		return
	}
	if seq >= l.next {
		l.next, l.bytes = seq+1, 0
	} else if seq > r.log.base.Seq {
		l.bytes -= size(r.log.between(max(l.acked, r.log.base.Seq), seq))
	}
	l.acked, l.movedAt = seq, r.now
	l.measure(r)
}

// rewind sends again what follows seq.
func (l *link) rewind(seq uint64) {
	l.next, l.acked, l.bytes, l.probe = min(l.next, seq+1), min(l.acked, seq), 0, 0
	l.poke = true
}

// recheck looks whether a change that the next copy calls damaged is damaged here. Then it is this one that has to go.
func (r *Replica) recheck(seq uint64) {
	if _, ok := r.log.at(seq); !ok || seq == r.log.base.Seq {
		return
	}
	if c := r.log.between(seq-1, seq)[0]; !c.intact() {
		r.stop(seq, "change %d is damaged in the memory of %v", seq, r.state.Self)
	}
}

// downward sends what there is to the copy after this one, all that is pending in as few messages as fit.
func (r *Replica) downward() {
	l := r.down
	if l == nil || !r.open() {
		return
	}
	r.engage()
	switch l.state {
	case asking:
		if l.poke && l.hello == nil {
			l.poke = false
			l.sentAt = r.now
			r.send(l.peer, Message{Kind: Ask})
		}
	case streaming:
		r.streamTo(l)
	case copying:
		r.sendChunks(l)
	}
}

func (r *Replica) streamTo(l *link) {
	end, ok := r.verified()
	if !ok {
		return
	}
	if l.next <= r.log.base.Seq { // it has fallen behind what is kept
		l.state, l.poke = asking, false
		l.sentAt = r.now
		r.send(l.peer, Message{Kind: Ask})
		return
	}
	for {
		n, bytes := r.batch(l, end)
		if n == 0 && !l.poke {
			return
		}
		prev, _ := r.log.at(l.next - 1)
		m := Message{Kind: Append, Prev: prev, Confirmed: r.confirmed, Head: r.head(), Floor: l.floor, Again: l.again}
		m.Changes = r.given.send(r.log.between(l.next-1, l.next-1+n))
		if l.acked+1 == l.next {
			l.movedAt = r.now
		}
		if l.probe == 0 && n > 0 {
			l.probe, l.probeAt = l.next-1+n, r.now
		}
		l.next, l.bytes = l.next+n, l.bytes+bytes
		l.poke, l.floor, l.sentAt = false, false, r.now
		r.send(l.peer, m)
	}
}

// batch says how many changes go into the next message: as many as are there, as the message may have, and as the window
// lets through. A single change always fits when nothing is on its way.
func (r *Replica) batch(l *link, end uint64) (n uint64, bytes int) {
	for _, c := range r.log.between(l.next-1, end) {
		flying := l.next - 1 - l.acked + n
		if flying >= uint64(r.lim.Window) || n > 0 && bytes+len(c.Data) > r.lim.Batch ||
			flying > 0 && l.bytes+bytes+len(c.Data) > r.lim.WindowBytes {
			break
		}
		n++
		bytes += len(c.Data)
	}
	return n, bytes
}
