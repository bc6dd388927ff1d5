package sim

// clientKinds are the faults of session clients.
func clientKinds() []kind {
	return []kind{
		{"session client killed", func(w *world) bool { return w.killMember(false) }},
		{"session client's machine dies", func(w *world) bool { return w.killMember(true) }},
		{"session client stands still", func(w *world) bool {
			c := w.someMember()
			if c == nil {
				return false
			}
			c.paused = w.now + w.between(50*ms, 8*second)
			w.tell("%s stands still for %s", c.name, span(c.paused-w.now))
			return true
		}},
		{"client's connection cut", func(w *world) bool {
			c := w.someMember()
			if c == nil || c.seat == nil || c.seat.cut {
				return false
			}
			c.seat.cut = true
			c.barred[c.seat.at.index] = w.now + w.between(0, 5*second)
			w.tell("nothing passes between %s and %v any more", c.name, c.seat.at)
			return true
		}},
		{"client's connection reset", func(w *world) bool {
			c := w.someMember()
			if c == nil || c.seat == nil || c.seat.cut {
				return false
			}
			s := c.seat
			w.after(w.between(50*us, 20*ms), func() { c.awake(func() { c.broken(s) }) })
			return true
		}},
		{"client cut off from all servers", func(w *world) bool {
			c := w.someMember()
			if c == nil {
				return false
			}
			until := w.now + w.between(100*ms, 6*second)
			for i := range w.machines {
				c.barred[i] = until
			}
			if c.seat != nil {
				c.seat.cut = true
			}
			for _, l := range c.openLanes() {
				l.seat.cut = true
			}
			w.tell("%s is cut off for %s", c.name, span(until-w.now))
			return true
		}},
		{"holder hears no events", func(w *world) bool {
			c := w.someMember()
			if c == nil || len(c.claims) == 0 {
				return false
			}
			c.deaf = w.now + w.between(second, 6*second)
			other := w.members[w.draw(len(w.members))]
			if other.of.zone != c.of.zone || other.dead {
				other = c
			}
			other.forceHold(c.claims[w.draw(len(c.claims))], false)
			return false // it counts when an event was lost
		}},
		{"two clients with one session", func(w *world) bool {
			c := w.someMember()
			if c == nil || c.of.secret == "" || c.session == "" {
				return false
			}
			c.twin()
			return true
		}},
		{"session client closed", func(w *world) bool {
			c := w.someMember()
			if c == nil || c.paused > w.now {
				return false
			}
			c.quit(func() { w.reborn(c.of) })
			return true
		}},
	}
}

// twin starts another process in the place of one that goes on: somebody took it for dead, perhaps because it has lost its connection
// just now. It is stopped some time later, in an orderly way or not.
func (c *member) twin() {
	w := c.w
	w.tell("%s gets a twin", c.name)
	if s := c.seat; s != nil && w.draw(2) == 0 {
		w.after(w.between(50*us, 20*ms), func() { c.awake(func() { c.broken(s) }) })
	}
	newMember(w, c.of, true)
	orderly := w.draw(2) == 0
	w.after(w.between(second, 6*second), func() {
		switch {
		case c.dead:
		case orderly && c.paused <= w.now:
			c.quit(func() {})
		default:
			c.die(false)
		}
	})
}

// quit is Client.Close, and the end of the process behind it.
func (c *member) quit(then func()) {
	for len(c.claims) > 0 {
		c.unsay(c.claims[0])
	}
	for len(c.tools) > 0 { // Close takes back what it had asked for and has not heard of, which is granted perhaps
		c.tools[0].lose("")
	}
	c.do(c.m.Close)
	c.w.after(c.w.between(100*ms, 3*second), func() {
		c.die(false)
		then()
	})
}

// someMember is any session client that lives and is not closed; nil if there is none.
func (w *world) someMember() *member {
	w.buried()
	if len(w.members) == 0 {
		return nil
	}
	return w.members[w.draw(len(w.members))]
}

// killMember ends a session client without a word. Another process takes its place.
func (w *world) killMember(power bool) bool {
	c := w.someMember()
	if c == nil {
		return false
	}
	c.die(power)
	w.reborn(c.of)
	return true
}

// reborn starts the next process of somebody after a while, unless there is one.
func (w *world) reborn(of *person) {
	w.after(w.between(ms, 5*second), func() {
		w.buried()
		for _, c := range w.members {
			if c.of == of {
				return
			}
		}
		if !w.healed {
			newMember(w, of, false)
		}
	})
}
