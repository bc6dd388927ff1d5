package bucket

// zone is what a zone has in this bucket. It stays for ever, since its tokens and tickets may never begin again; a daemon's
// zones are few and configured.
type zone struct {
	name     string
	id       uint32
	settings ZoneSettings

	token  uint64 // the last one given
	ticket uint64 // the last one given

	index    index
	order    ordered
	tickets  map[uint64]uint32 // waiters
	sessions map[string]uint32
	conns    map[Conn]uint32 // the first session that named the connection
	requests map[userRequest]uint32
	finished list // of requests without a session, the oldest first
	ended    ring

	locks, holds, waiters, live int // live sessions

	armed int64 // soft: for when the timer is set
	timer node
}

// userRequest is what an idempotency id outside a session is scoped to.
type userRequest struct{ user, id string }

// zoneOf finds a zone, nil if nothing was ever changed in it.
func (t *Table) zoneOf(name string) *zone { return t.byName[name] }

// openZone finds a zone or begins it.
func (t *Table) openZone(name string) *zone {
	if z := t.byName[name]; z != nil {
		return z
	}
	z := &zone{
		name: name, id: uint32(len(t.zones)), settings: t.settings[name], armed: never,
		tickets: make(map[uint64]uint32), sessions: make(map[string]uint32),
		conns: make(map[Conn]uint32), requests: make(map[userRequest]uint32),
	}
	z.order.locks = &t.locks
	t.zones = append(t.zones, z)
	t.byName[name] = z
	return z
}

func (z *zone) usage() Usage {
	return Usage{Names: z.locks, Holds: z.holds, Waiters: z.waiters, Sessions: z.live}
}

// ring remembers how the last holds of a zone ended, so that who comes too late is told.
type ring struct {
	ends []end
	next int // where the next one goes, once there are ringSize
}

// ringSize is how many ended holds a zone remembers. The replicated state depends on it.
const ringSize = 1024

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
