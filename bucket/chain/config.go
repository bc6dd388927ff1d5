package chain

import "fmt"

// Acks is the rule of whose confirmation an answer needs.
type Acks uint8

// The rules. It is the same on all members; a zone or a lock that wants more asks for it outside of this package, which
// can only make its answers later and never widens who may take over.
const (
	First    Acks = iota // the primary and the first secondary; the in-sync set has at most these two
	Majority             // more than half of the in-sync set
	All                  // the whole in-sync set, not those who join
)

var ackNames = [...]string{"first", "majority", "all"}

func (a Acks) String() string {
	if int(a) < len(ackNames) {
		return ackNames[a]
	}
	return fmt.Sprintf("Acks(%d)", uint8(a))
}

// need is how many of an in-sync set of n members have to have a change before it is answered.
func (a Acks) need(n int) int {
	if a == Majority {
		return n/2 + 1
	}
	return n
}

// seals is how many of an in-sync set of n members have to be sealed by a takeover: one more than an answer can miss, so
// that one of them has whatever was answered.
func (a Acks) seals(n int) int { return n - a.need(n) + 1 }

// Config of one copy.
type Config struct {
	Bucket uint32
	Self   Member // used only for a copy that never was; State.Self of what is restored goes before it
	Acks   Acks
	Limits Limits

	// Recovery is how long after the beginning of a recovery nothing is granted: the nodes' lease and the longest lease of
	// a client, in nanoseconds. See SetRecovery.
	Recovery int64
}

// Limits of a copy. A zero field gets the default, which is for a node with some hundred buckets.
type Limits struct {
	// Queue should be more than Pending: what waits for confirmation counts too.
	Pending      int // changes that may wait for confirmation (65,536); then Propose returns ErrFull
	PendingBytes int // and their bytes (16 MiB)
	Change       int // bytes of one change (4 MiB)

	Window      int // changes sent on one link and not confirmed by its other end (4,096)
	WindowBytes int // and their bytes (8 MiB)
	Batch       int // bytes of changes in one message (512 KiB), if it is not a single change

	Keep       int // confirmed changes that stay in memory for a neighbour that was away for a moment (512)
	KeepBytes  int // and their bytes (128 KiB)
	Queue      int // as Keep, while the next member lags or gets a snapshot (131,072)
	QueueBytes int // and their bytes (48 MiB)

	Chunk    int   // bytes of a part of a snapshot (256 KiB)
	Chunks   int   // parts on their way (8)
	Snapshot int64 // bytes of a snapshot (2 GiB)

	Lag uint64 // changes that a copy may be behind to be counted as caught up (256)

	Resend int64 // nanoseconds without an answer until something is sent again (50 ms); on a long way up to Drop/8
	Drop   int64 // nanoseconds without progress until the primary drops a member (1 s)
}

func (l Limits) withDefaults() Limits {
	set := func(p *int, v int) {
		if *p == 0 {
			*p = v
		}
	}
	set(&l.Pending, 65536)
	set(&l.PendingBytes, 16<<20)
	set(&l.Change, 4<<20)
	set(&l.Window, 4096)
	set(&l.WindowBytes, 8<<20)
	set(&l.Batch, 512<<10)
	set(&l.Keep, 512)
	set(&l.KeepBytes, 128<<10)
	set(&l.Queue, 131072)
	set(&l.QueueBytes, 48<<20)
	set(&l.Chunk, 256<<10)
	set(&l.Chunks, 8)
	if l.Snapshot == 0 {
		l.Snapshot = 2 << 30
	}
	if l.Lag == 0 {
		l.Lag = 256
	}
	if l.Resend == 0 {
		l.Resend = 50e6
	}
	if l.Drop == 0 {
		l.Drop = 1e9
	}
	return l
}

// Validate returns an error that wraps ErrConfig.
func (c *Config) Validate() error {
	l := c.Limits.withDefaults()
	small := min(l.Pending, l.PendingBytes, l.Change, l.Window, l.WindowBytes, l.Batch, l.Keep, l.KeepBytes, l.Queue,
		l.QueueBytes, l.Chunk, l.Chunks)
	switch {
	case c.Self.Node == 0:
		return fmt.Errorf("%w: no node", ErrConfig)
	case c.Acks > All:
		return fmt.Errorf("%w: %v", ErrConfig, c.Acks)
	case small < 1 || l.Snapshot < 1 || l.Resend < 1 || l.Drop < 1 || c.Recovery < 0:
		return fmt.Errorf("%w: a limit is negative", ErrConfig)
	case l.Change > maxData || l.Batch > maxData || l.Chunk > maxData:
		return fmt.Errorf("%w: a message could be longer than %d bytes", ErrConfig, maxData)
	case l.Drop < l.Resend:
		return fmt.Errorf("%w: members would be dropped before anything is sent again", ErrConfig)
	}
	return nil
}
