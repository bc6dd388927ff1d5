package chain

import "math"

// Never is what [Replica.Next] says when nothing is due without an input.
const Never int64 = math.MaxInt64

// Tick tells the time, boot-time clock in nanoseconds, and does what is due at it. Call it first in each turn in which this
// copy gets an input, and when Next says so; it costs next to nothing if nothing is due. A time before one that was told
// already counts as that one.
func (r *Replica) Tick(now int64) {
	r.now = max(r.now, now)
	if r.now < r.due() {
		return
	}
	r.dirty = true
	u := &r.up
	if r.now >= r.dueHello() {
		u.hello = true
	}
	if r.now >= r.dueDoubt() {
		u.ack, u.askedAt = true, r.now
	}
	if l := r.down; l != nil {
		if l.joins && r.now-l.heardAt >= r.lim.Drop {
			r.down = nil
		} else {
			r.repeat(l)
		}
	}
	if r.now >= r.duePlan() {
		r.replan, r.plannedAt = true, r.now
	}
	if r.now >= r.dueAsk() {
		r.ask()
	}
	r.seek()
	r.askToLeave()
}

// Next says when Tick and then Ready have to be called if no input comes before: at once (now) if there is something for
// Ready to give, at a later time in nanoseconds, or Never. What it says holds until the next input. A copy that has nothing
// to do, wherever it stands in the chain, says Never, so it costs nothing. After Ready it is later than now; that Ready gave
// NeedSnapshot, Sealed or Behind and nothing came of it is the caller's to remember.
func (r *Replica) Next(now int64) int64 {
	if r.dirty {
		return now
	}
	due := r.due()
	if due == Never {
		return Never
	}
	// A timer that finds nothing to do must not make its caller run in circles.
	return max(due, r.readyAt+r.lim.Resend/8)
}

// due is when the first timer ends.
func (r *Replica) due() int64 {
	return min(r.dueHello(), r.dueDoubt(), r.dueDown(), r.duePlan(), r.dueAsk(), r.dueSeek(), r.dueLeave())
}

// dueHello: the upper end may not have heard where to begin.
func (r *Replica) dueHello() int64 {
	if u := &r.up; u.peer == (Member{}) || u.matched || u.hello || !r.open() {
		return Never
	}
	return r.up.helloAt + r.lim.Resend
}

// dueDoubt: nor which change to send once more.
func (r *Replica) dueDoubt() int64 {
	if r.up.doubt == 0 || !r.open() {
		return Never
	}
	return r.up.askedAt + r.lim.Resend
}

// dueDown is when the lower end gets something again, or is forgotten.
func (r *Replica) dueDown() int64 {
	l := r.down
	if l == nil {
		return Never
	}
	at := r.dueRepeat(l)
	if l.joins {
		at = min(at, l.heardAt+r.lim.Drop)
	}
	return at
}

// duePlan is when the primary thinks about the view again, not too often under load: somebody may have made progress, or
// none for too long.
func (r *Replica) duePlan() int64 {
	l := r.lead
	if l == nil || r.replan || r.proposal != nil || !r.open() {
		return Never
	}
	at := Never
	if l.owed {
		at = r.plannedAt + r.lim.Resend/2
	}
	if l.recover > r.plannedAt {
		at = min(at, l.recover)
	}
	return at
}

// dueAsk: the control plane may not have heard the question.
func (r *Replica) dueAsk() int64 {
	if r.proposal == nil {
		return Never
	}
	return r.proposedAt + r.lim.Resend
}

// dueSeek: who looks for a place has not found one, or has lost it.
func (r *Replica) dueSeek() int64 {
	switch {
	case r.view.Epoch == 0 || r.place >= 0 || !r.wanted || !r.open():
		return Never
	case r.up.peer != (Member{}):
		return r.up.heardAt + r.lim.Drop
	case r.join.tried:
		return r.join.sentAt + 2*r.lim.Resend
	}
	return r.now
}

// dueLeave: the primary may not have heard that this copy wants to be dropped.
func (r *Replica) dueLeave() int64 {
	if !r.leaving || r.place == 0 || r.view.Epoch == 0 {
		return Never
	}
	return r.leftAt + r.lim.Resend
}
