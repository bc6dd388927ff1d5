package subjects

import "time"

// Limits on what one request may carry. A request beyond one of them is refused with 413 too_large or 400 and changes
// nothing.
const (
	MaxName        = 4096      // bytes of a lock's name; at least 1
	MaxData        = 16 << 10  // bytes of `data`, as JSON text
	MaxBody        = 64 << 10  // bytes of a whole request body
	MaxRequestID   = 64        // characters of `request` outside a session
	MaxHolder      = 256       // bytes of `holder` and of a client's `name`
	MaxText        = 1024      // bytes of `reason` and `outcome`
	MaxLocation    = 256       // bytes of `location`
	MaxSlots       = 1_000_000 // `slots` and `take`, at least 1
	MaxWait        = 24 * time.Hour
	MaxQuiet       = time.Hour
	MaxTTL         = 366 * 24 * time.Hour // `ttl` of a hold; 0s is for ever
	MaxListLimit   = 1000                 // `limit` of list; the default is DefaultListLimit
	MaxOpaque      = 1024                 // bytes of `session`, `secret`, `receipt`, `server`, `node` and `user`
	MaxAfter       = 8192                 // bytes of `after`, which may have a whole name in it
	MaxBucketRange = 1024                 // buckets that one request for the state of the cluster names
	MaxToken       = 1<<53 - 1            // fencing tokens stay exact in JSON numbers

	DefaultListLimit = 100 // records on a page of list if the request names no limit
)

// Mode is how a lock is held.
type Mode uint8

// The modes. The zero value is the protocol's default.
const (
	Exclusive Mode = iota
	Shared
	Semaphore
)

// Kind is what a hold's life is bound to.
type Kind uint8

// The kinds. KindDefault is what a request that names none has: connection with a session, static without.
const (
	KindDefault Kind = iota
	Static
	Connection
)

// Drain is how a waiting exclusive request treats shared and semaphore requests that come after it.
type Drain uint8

// The drains; the zero value is the protocol's default.
const (
	Hard Drain = iota
	Soft
	Timed
)

// Acks is how many copies must have a change before it is answered.
type Acks uint8

// The acknowledgement rules. AcksDefault is the zone's.
const (
	AcksDefault Acks = iota
	AcksFirst
	AcksMajority
	AcksAll
)

// State filters a list.
type State uint8

// The filters of list. AnyState is the default.
const (
	AnyState State = iota
	Held           // has a holder
	Waited         // has somebody in the queue
)

// Has is a set of the optional fields whose absence differs from their zero value.
type Has uint16

// The members of Has.
const (
	HasTTL Has = 1 << iota
	HasGrace
	HasKey
	HasData
	HasToken
	HasRequest // the request carried an idempotency id
	HasPrefix
	HasWait
	HasBuckets
)

// Request is a decoded request of any operation; each operation uses the fields that the protocol gives it and ignores
// the others. Durations are in nanoseconds.
type Request struct {
	Op  Op
	Has Has

	Name    string // bytes, not necessarily UTF-8
	Session string // the session token as sent; the broker verifies it

	RequestID string // idempotency id outside a session, MaxRequestID characters at most
	Number    uint64 // idempotency id inside a session (RequestID is "" then), at least 1
	Done      uint64 // in a session: the client awaits no reply to a number below this

	Mode    Mode
	Kind    Kind
	Drain   Drain
	Acks    Acks
	Slots   uint32 // of a semaphore, 1..MaxSlots
	Take    uint32 // of a semaphore, 1..Slots; 1 for the other modes
	Enqueue bool
	Recall  bool
	Now     bool // force: at once
	Trusted bool // renew: its sender has trusted the hold without a break

	TTL       time.Duration
	Grace     time.Duration
	Wait      time.Duration
	Quiet     time.Duration
	OlderThan time.Duration

	Key     uint64 // unlock key
	Token   uint64 // fencing token
	Holder  string // text for people; in session-open the field is called name and stored here too
	Data    []byte // JSON text; nil if absent
	Outcome string
	Reason  string

	Prefix string // bytes
	After  string // opaque page mark
	State  State
	Limit  uint32

	Secret   string
	Location string
	Server   string // id of the NATS server that the session's connection is on
	CID      uint64 // id of that connection there
	Node     string
	Beat     uint64
	Receipt  string
	Epoch    uint64 // reclaim
	User     string // reclaim

	// FirstBucket and LastBucket are the buckets that a request for the state of the cluster is about, with HasBuckets; at
	// most MaxBucketRange of them.
	FirstBucket, LastBucket uint32
}
