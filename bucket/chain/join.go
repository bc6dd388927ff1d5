package chain

// joining is how a copy that is not in the chain looks for a place behind it (seed 000, "Cascading secondaries").
type joining struct {
	ask    Member // whom it asked last
	hops   int    // how often it was sent on
	sentAt int64
	tried  bool
}

// Join makes this copy look for a place at the end of the chain, until it is a member or Leave is called. A member that the
// chain has dropped does so by itself.
func (r *Replica) Join() {
	r.wanted, r.dirty = true, true
	r.leaving = r.leaving && r.stopped != ""
}

// Leave makes this copy ask to be dropped from the chain; once a view without it is installed it throws away what it has. A
// copy outside of the chain does so at once, unless it may be in the next view already.
// A primary has to hand over first: ErrNotPrimary does not come back, ErrMember does.
func (r *Replica) Leave() error {
	if r.place == 0 {
		return ErrMember
	}
	r.wanted, r.dirty = false, true
	switch {
	case r.place > 0, r.shown, r.view.Epoch == 0 && r.log.last().Seq > 0:
		r.leaving = true
		r.leftAt = r.now - r.lim.Resend
		if r.place < 0 {
			r.detach()
		}
	case r.log.last().Seq > 0:
		r.discard()
	default:
		r.up, r.down = upstream{again: r.up.again}, nil
	}
	return nil
}

// seek asks for a place, at first the primary.
func (r *Replica) seek() {
	switch {
	case r.view.Epoch == 0 || r.place >= 0 || !r.wanted || !r.open():
		return
	case r.up.peer != (Member{}):
		if r.now-r.up.heardAt < r.lim.Drop {
			return
		}
		r.detach() // it forgot us, or is gone
	}
	if r.join.tried && r.now-r.join.sentAt < 2*r.lim.Resend {
		return
	}
	r.askFor(r.view.Primary(), 0)
}

func (r *Replica) askFor(at Member, hops int) {
	r.join = joining{ask: at, hops: hops, sentAt: r.now, tried: true}
	anchor, _ := r.log.at(max(r.confirmed, r.log.base.Seq))
	r.send(at, Message{Kind: Join, Last: r.log.last(), Anchor: anchor, Fresh: r.up.fresh})
}

// detach leaves the place behind another copy, and whoever stood behind this one.
func (r *Replica) detach() {
	r.up = upstream{again: r.up.again, fresh: r.up.fresh, stage: r.up.stage}
	r.down = nil
	r.join = joining{}
}

// onJoin answers one who looks for a place: the primary sends it to the tail, and whoever has somebody behind it already
// sends it to that one.
func (r *Replica) onJoin(m *Message) {
	if r.lead != nil {
		// Whoever comes back as a new life has no use for the place of the old one.
		for i := range r.lead.peers {
			if p := &r.lead.peers[i]; p.Member.Node == m.From.Node && p.Member.Inc < m.From.Inc {
				p.leaving, r.replan = true, true
			}
		}
	}
	switch {
	case r.view.Place(m.From) >= 0:
		return // a member of the chain has its place by the view
	case r.place >= 0 && r.place < len(r.view.Chain)-1:
		r.redirect(m.From, r.view.Tail())
		return
	case r.place < 0 && (r.up.peer == (Member{}) || r.up.peer.Node == m.From.Node):
		return // who has no place has none to give
	case len(r.view.Chain) >= MaxChain:
		return
	case r.down != nil && r.down.peer.Node != m.From.Node:
		r.redirect(m.From, r.down.peer) // somebody else was faster
		return
	case r.down != nil && r.down.peer.Inc > m.From.Inc:
		return // an earlier life of the one who is there
	}
	r.down = newLink(m.From, r.now)
	r.down.joins, r.down.poke = true, false
	hello := *m // m itself is the caller's, and need not be on the heap
	r.down.hello = &hello
	r.send(m.From, Message{Kind: Welcome})
}

func (r *Replica) redirect(who, to Member) {
	r.send(who, Message{Kind: Redirect, At: to})
}

// onRedirect asks the next one. A chain has no more than MaxChain members and as many who join, so a longer way is a circle.
func (r *Replica) onRedirect(m *Message) {
	asked := r.join.tried && m.From == r.join.ask
	behind := m.From == r.up.peer && r.up.peer != (Member{})
	if r.place >= 0 || !r.wanted || !asked && !behind || m.At.Node == r.state.Self.Node {
		return
	}
	if behind {
		r.detach()
	}
	if r.join.hops < 2*MaxChain {
		r.askFor(m.At, r.join.hops+1)
	}
}

func (r *Replica) onWelcome(m *Message) {
	if r.place >= 0 || !r.wanted || !r.join.tried {
		return // not asked for, or there is a place already
	}
	r.join = joining{}
	r.up = upstream{again: r.up.again, fresh: r.up.fresh, stage: r.up.stage, peer: m.From, heardAt: r.now}
	r.up.helloAt = r.now // what it has to know was in our Join
}

// askToLeave tells the primary again and again, until a view comes.
func (r *Replica) askToLeave() {
	if r.now < r.dueLeave() {
		return
	}
	r.leftAt = r.now
	r.send(r.view.Primary(), Message{Kind: Leave})
}
