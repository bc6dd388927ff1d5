package chain

// repeat sends once more what there was no answer to.
func (r *Replica) repeat(l *link) {
	switch {
	case r.now < r.dueRepeat(l):
	case l.state == copying:
		l.snap.again()
	case l.state == streaming && l.acked+1 < l.next && r.now-l.movedAt >= r.patience(l):
		l.wait = min(2*r.patience(l), r.lim.Drop/8) // the way may be longer than was thought
		l.rewind(l.acked)
	default:
		l.poke = true
	}
}

// dueRepeat is when something is to be sent though there is nothing new.
func (r *Replica) dueRepeat(l *link) int64 {
	if !r.open() {
		return Never
	}
	verified, ok := r.verified()
	switch {
	case l.state == asking && l.hello == nil:
		return l.sentAt + r.lim.Resend
	case l.state == copying && l.snap.taken && ok && l.snap.point.Seq <= min(verified, r.confirmed):
		return l.sentAt + r.lim.Resend
	case l.state != streaming || !ok:
		return Never
	}
	// Somebody below is not known to have everything, or does not know what is confirmed.
	if l.told < r.confirmed || r.behindBelow(l) {
		return l.sentAt + r.patience(l)
	}
	if l.joins { // it would take silence for our end
		return l.sentAt + max(r.lim.Resend, r.lim.Drop/4)
	}
	return Never
}

// behindBelow says whether anybody below is not known to have all that this copy has.
func (r *Replica) behindBelow(l *link) bool {
	verified, ok := r.verified()
	if !ok {
		return false
	}
	for _, p := range l.below {
		if p.Seq < verified {
			return true
		}
	}
	after := 1 // who joins
	if r.place >= 0 {
		after = max(after, len(r.view.Chain)-1-r.place)
	}
	return len(l.below) < after
}

// patience is how long an answer may take before something is sent again: Limits.Resend, or twice the way there and back if
// that is longer, so that a far neighbour is not sent everything twice. An eighth of Limits.Drop is the most, for it must
// have its chances before it is dropped.
func (r *Replica) patience(l *link) int64 { return max(l.wait, r.lim.Resend) }

// measure notes how long the way there and back is. What was sent again says nothing: who knows which one was answered.
// (Karn and Partridge, Improving Round-Trip Time Estimates in Reliable Transport Protocols, SIGCOMM 1987.)
func (l *link) measure(r *Replica) {
	if l.probe == 0 || l.acked < l.probe {
		return
	}
	l.wait = min(max(2*(r.now-l.probeAt), l.wait-l.wait/8), r.lim.Drop/8)
	l.probe = 0
}
