package bucket

import "strings"

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
	known    known           // of them
	conns    map[Conn]uint32 // the first session that named the connection
	requests map[userRequest]uint32
	finished list // of requests without a session, the oldest first
	ended    ring

	locks, holds, waiters, live int // live sessions

	quiet int64 // soft: since when no hold has ended
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
	name = strings.Clone(name) // it may be a part of a longer text
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
