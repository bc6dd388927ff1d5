package bucket

import "time"

// ring remembers how the last holds of a zone ended, so that who comes too late is told. doc.go says what hangs on it.
type ring struct {
	ends []end
	next int // where the next one goes, once there are ringSize
}

const (
	// ringSize is how many ended holds a zone remembers. The replicated state depends on it.
	ringSize = 1024
	// endedKeep is for how long it remembers more than Limits.Ended of them when no further hold ends.
	endedKeep = 10 * time.Minute
)

type end struct {
	key  uint64
	name uint64 // index of the lock's name
	why  why
}

func (r *ring) add(e end) {
	if len(r.ends) < ringSize {
		r.ends = append(r.ends, e)
		return
	}
	r.ends[r.next] = e
	r.next = (r.next + 1) % ringSize
}

// find gives how the hold with a key ended, whyNone if that is not remembered.
func (r *ring) find(key, name uint64) why {
	for i := range r.ends {
		if e := &r.ends[i]; e.key == key && e.name == name {
			return e.why
		}
	}
	return whyNone
}

// forget takes away the oldest; there must be as many.
func (r *ring) forget(n int) {
	left := make([]end, len(r.ends)-n)
	for i := range left {
		left[i] = r.ends[(r.next+n+i)%len(r.ends)]
	}
	*r = ring{ends: left}
}

// forgetEnds takes away the oldest ended holds, and the memory of a busier time with them; false if there are fewer.
func (z *zone) forgetEnds(n int) bool {
	if n <= 0 || n > len(z.ended.ends) {
		return false
	}
	z.ended.forget(n)
	if z.locks == 0 {
		z.index, z.order = index{}, ordered{locks: z.order.locks}
	}
	if len(z.tickets) == 0 {
		z.tickets = make(map[uint64]uint32)
	}
	if len(z.sessions) == 0 {
		z.sessions, z.known = make(map[string]uint32), known{}
	}
	if len(z.conns) == 0 {
		z.conns = make(map[Conn]uint32)
	}
	if len(z.requests) == 0 {
		z.requests = make(map[userRequest]uint32)
	}
	return true
}

// hasEnded counts the quiet of a zone anew; a primary sees to it that the timer rings when it is over.
func (t *Table) hasEnded(z *zone) {
	z.quiet = t.now.Boot
	if t.primary && t.endsDue(z) < z.armed {
		t.wheel.set(timerOf(zoneTimer, z.id+1))
	}
}

// endsDue is when a zone that stays quiet forgets all but a few of its ended holds.
func (t *Table) endsDue(z *zone) int64 {
	if len(z.ended.ends) <= t.cfg.Limits.Ended {
		return never
	}
	return later(z.quiet, endedKeep)
}
