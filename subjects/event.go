package subjects

import "time"

// SessionEvent is published on locks.event.session.<user>.<id>. Every event's body repeats its own subject and type, and
// clients ignore those that do not.
type SessionEvent struct {
	Subject string // filled in by the edge
	Type    string // granted, queued, place, timeout, cancelled, lost, forced, recall
	Name    string
	Token   uint64   // of the hold concerned, 0 if none
	Ticket  uint64   // of the waiter concerned, 0 if none
	Place   uint32   // place
	Request string   // idempotency id of the acquire concerned, "" if none
	Why     string   // lost, forced
	Queue   int      // recall: how many wait; timeout: how many waited
	Grant   *Grant   // granted
	Refusal *Refusal // timeout, cancelled
}

// LockEvent is published on locks.event.lock.<type>.<bucket> in zones that have lock events switched on. It never has a
// key.
type LockEvent struct {
	Subject string // filled in by the edge
	Type    string // granted, released, expired, lost, forced
	Name    string
	Token   uint64
	Holder  string
	User    string
	Outcome string // released
	Held    time.Duration
	Bucket  uint32
}

// ServerEvent is published on locks.event.server.<up|down|changed>.<node> and locks.event.cluster.<up|down|mode>.
type ServerEvent struct {
	Subject string
	Type    string // server.up, server.down, server.changed, cluster.up, cluster.down, cluster.mode
	Node    string
	Name    string
	URLs    []string
	Status  string // up, stopping
	Mode    string // cluster events: normal, …
}
