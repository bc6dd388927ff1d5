package subjects

import "time"

// Body is a reply or an event: it writes its own JSON.
type Body interface {
	// AppendJSON appends the body's JSON object to dst and returns it.
	AppendJSON(dst []byte) []byte
}

// Grant answers an acquire or a renew.
type Grant struct {
	Name    string
	Key     uint64 // unlock key, 16 hex digits on the wire
	Token   uint64 // fencing token
	Mode    Mode
	Take    uint32
	TTL     time.Duration // limit of the hold, 0 for none
	Lease   time.Duration // trust between keep-alives or renewals, 0 for none
	Bucket  uint32
	Epoch   uint64
	Node    string // filled in by the edge
	Ticket  uint64
	Waited  time.Duration
	Beat    uint64 // last keep-alive of the session that the primary had seen; 0 if none, then left out
	Durable bool
	Receipt string // filled in by the edge

	// Not on the wire: what the receipt covers besides.
	Slots   uint32
	Kind    Kind
	Session string // the session's id
	User    string
}

// Released answers a release.
type Released struct {
	Token uint64
	Held  time.Duration
}

// Queued answers an acquire with enqueue (code 202).
type Queued struct {
	Name   string
	Ticket uint64
	Place  uint32 // 1 is next
	Lease  time.Duration
	Bucket uint32
	Node   string // filled in by the edge
}

// Cancelled answers a cancel. Was is "waiting", "granted", "unseen", "released" or "cancelled".
type Cancelled struct {
	Request string // as asked
	Was     string
	Token   uint64 // of the hold that was released, 0 otherwise
}

// Forced answers a force.
type Forced struct {
	Token uint64
	Ended bool          // the hold is over
	Ends  time.Duration // otherwise: it is over after this at the latest
}

// Checked answers a check.
type Checked struct {
	Current bool
	Newest  uint64
	Oldest  uint64
}

// Holder is one hold in a Record. Since is the wall clock of its grant, in Unix milliseconds.
type Holder struct {
	Holder  string
	User    string
	Session string // id, "" if static without a session
	Token   uint64
	Since   int64
	TTL     time.Duration
	Take    uint32
	Kind    Kind
	Forced  bool
	Data    []byte
}

// Waiter is one place of the queue in a Record. Since is in Unix milliseconds.
type Waiter struct {
	Ticket  uint64
	Holder  string
	User    string
	Session string
	Mode    Mode
	Take    uint32
	Since   int64
}

// Record answers a query and is one line of a list. The queue may be cut; Waiting is its whole length.
type Record struct {
	Name    string
	Held    bool
	Mode    Mode
	Slots   uint32 // of a semaphore
	Holders []Holder
	Queue   []Waiter
	Waiting int
	More    int // holders that were left out of Holders
}

// Page answers a list. Next is "" on the last page.
type Page struct {
	Locks []Record
	Next  string
}

// SessionClosed answers session-close: how many holds were released.
type SessionClosed struct {
	Released int
}

// Opened answers session-open.
type Opened struct {
	Session     string
	Secret      string
	User        string
	TTL         time.Duration
	Lease       time.Duration
	Node        string
	Incarnation uint64
	Disconnect  string // "event": a closed connection is noticed; "ttl": silence only
	Events      string // subject of the session's events
}

// Kept answers a keep-alive for the buckets of which a node is primary. Hash is the XOR of xxhash64 over the 8 big-endian
// bytes of each token of the session's holds.
type Kept struct {
	Node    string
	Beat    uint64
	Count   int
	Hash    uint64 // 16 hex digits on the wire
	Lease   time.Duration
	Buckets []KeptBucket // the same for each bucket that has a hold, in order; nil if the node does not tell
}

// KeptBucket is one bucket's part of a Kept. Tokens are unique in a bucket only, and buckets move between nodes: what a
// client compares is this.
type KeptBucket struct {
	Bucket uint32
	Epoch  uint64 // as in the grants
	Count  int
	Hash   uint64
}

// Map says which node is primary of each bucket, as of a change of the shared configuration.
type Map struct {
	Change  uint64
	Primary []string // by bucket; nil where the cluster hides its servers
}

// Info answers info.
type Info struct {
	Protocol int
	Features []string
	Version  string
	Cluster  string
	Zone     string
	User     string
	Node     string
	Buckets  uint32
	Map      Map
	Mode     string // normal, degraded, active-passive, no-quorum
	Have     int    // quorum
	Need     int
	MaxLease time.Duration
}

// Server is one node in the answer to servers. Status is "up", "away", "draining" or "stopping".
type Server struct {
	Node     string
	Name     string
	URLs     []string
	Location string
	Status   string
}

// Servers answers servers.
type Servers struct {
	Servers []Server
}

// Pong answers ping. Now is the node's wall clock in Unix milliseconds.
type Pong struct {
	Node string
	Now  int64
}
