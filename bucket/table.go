package bucket

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/opencluster/oclocks/internal/mutant"
	"github.com/opencluster/oclocks/subjects"
)

// Config is what a table is made with.
type Config struct {
	Bucket  uint32 // which bucket this is, below Buckets
	Buckets uint32 // how many there are
	Limits  Limits

	// Hash places names in the table's index. It must always give the same for the same name and be keyed with something
	// that clients do not know (hash/maphash with a seed of the process), or a client could choose names that make the index
	// slow. Nothing else depends on it. Nil is a hash that clients know: for tests.
	Hash func(name string) uint64

	// Journaled says that changes are kept on disk, SyncAlways that each is on the disk before it is answered: both only
	// for `durable` in grants.
	Journaled, SyncAlways bool
}

// The defaults of Limits.
const (
	defaultQueue    = 100_000
	defaultRequests = 65_536
	defaultEnded    = 16
	defaultMaxLease = time.Minute
)

// Table is the lock table of one bucket. It is not safe for concurrent use. Make it with New.
type Table struct {
	cfg      Config
	buckets  uint32 // how many there are
	born     uint32 // how many there were when this bucket began; 0 before its first change
	seq      uint64
	epoch    uint64
	term     uint32
	counter  uint32
	zones    []*zone // by number, in the order of their first change
	byName   map[string]*zone
	settings map[string]ZoneSettings
	texts    intern
	locks    locks
	shares   slab[shared]
	holds    slab[hold]
	extras   slab[holdMore]
	waiters  slab[waiter]
	sessions slab[session]
	entries  slab[entry]
	outcomes spares
	answers  answers        // that were not given yet
	made     subjects.Texts // of the changes that were applied, for their effects

	// The primary's own.
	primary      bool
	recoverUntil int64
	stopping     bool
	wheel        wheel
	heard        uint32 // the last session that came in a later opening than was known

	// Of the step in progress.
	now    Now
	out    *Output
	at     cursor
	change progress
	call   call
	broken error
}

// cursor is the zone and the lock that ops are about.
type cursor struct {
	zone     *zone // nil if nothing was ever changed in it
	zoneName string
	name     string
	index    uint64 // of the name
	hash     uint32
	lock     uint32 // 0 if nobody holds it or waits for it
}

// New makes an empty table. It answers every request with 503 until it is promoted.
func New(cfg Config) *Table {
	if cfg.Limits.Queue <= 0 {
		cfg.Limits.Queue = defaultQueue
	}
	if cfg.Limits.Requests <= 0 {
		cfg.Limits.Requests = defaultRequests
	}
	if cfg.Limits.Ended <= 0 {
		cfg.Limits.Ended = defaultEnded
	}
	if cfg.Limits.MaxLease <= 0 {
		cfg.Limits.MaxLease = defaultMaxLease
	}
	if cfg.Hash == nil {
		cfg.Hash = xxhash.Sum64String
	}
	t := &Table{cfg: cfg, buckets: cfg.Buckets, byName: make(map[string]*zone), settings: make(map[string]ZoneSettings)}
	t.locks.bits, t.holds.bits = 10, 10
	t.shares.bits, t.extras.bits, t.waiters.bits, t.sessions.bits, t.entries.bits = 6, 6, 6, 6, 6
	t.locks.rests.bits = 6
	t.wheel.node, t.wheel.at = t.timerNode, t.timerAt
	return t
}

// Seq is the sequence number of the newest change, 0 before the first.
func (t *Table) Seq() uint64 { return t.seq }

// Err tells why the table must be thrown away, nil if it need not: see ErrBroken.
func (t *Table) Err() error { return t.broken }

// Next is the boot time in nanoseconds at which a Tick is due, math.MaxInt64 if there is nothing to wait for. It may be
// earlier than anything that happens.
func (t *Table) Next() int64 {
	if !t.primary || t.broken != nil {
		return never
	}
	return t.wheel.next()
}

// SetMaxLease sets Limits.MaxLease: from now on a hold with a longer lease is not called durable, also when it is renewed. It is
// this node's own setting, not replicated: what a grant has said is in its change.
func (t *Table) SetMaxLease(longest time.Duration) {
	if longest <= 0 {
		longest = defaultMaxLease
	}
	t.cfg.Limits.MaxLease = longest
}

// SetZone switches on what a zone wants. It is this node's own setting, not replicated.
func (t *Table) SetZone(zone string, settings ZoneSettings) {
	t.settings[zone] = settings
	if z := t.zoneOf(zone); z != nil {
		z.settings = settings
	}
}

// Zones are the names of all zones that ever had something in this table, in the order of their bytes.
func (t *Table) Zones() []string { return slices.Sorted(maps.Keys(t.byName)) }

// Usage counts what a zone has.
func (t *Table) Usage(zone string) Usage {
	if z := t.zoneOf(zone); z != nil {
		return z.usage()
	}
	return Usage{}
}

// Totals counts what all zones have.
func (t *Table) Totals() Usage {
	var sum Usage
	for _, z := range t.zones {
		u := z.usage()
		sum.Names += u.Names
		sum.Holds += u.Holds
		sum.Waiters += u.Waiters
		sum.Sessions += u.Sessions
	}
	return sum
}

// atZone points the cursor at a zone, and at no name.
func (t *Table) atZone(name string) { t.at = cursor{zone: t.byName[name], zoneName: name} }

// atName points the cursor at a name of its zone; "" is none.
func (t *Table) atName(name string) {
	t.at = cursor{zone: t.at.zone, zoneName: t.at.zoneName, name: name}
	if name == "" {
		return
	}
	t.at.index = subjects.Index(name)
	t.at.hash = t.hash(name)
	if t.at.zone != nil {
		same := func(id uint32) bool { return t.locks.is(t.locks.at(id), name) }
		t.at.lock = t.at.zone.index.find(t.at.hash, same)
		if t.at.lock == 0 && mutant.On(mutant.ZonesShareNames) {
			t.at.lock = t.zones[0].index.find(t.at.hash, same)
		}
	}
}

func (t *Table) hash(name string) uint32 {
	h := t.cfg.Hash(name)
	return uint32(h ^ h>>32)
}

// atLock points the cursor at a lock that is there.
func (t *Table) atLock(id uint32) {
	if t.at.lock != id {
		l := t.locks.at(id)
		t.at.zone = t.zones[l.zone]
		t.at.zoneName = t.at.zone.name
		t.atName(t.locks.name(l))
	}
}

// lock is the lock at the cursor, nil if nobody holds it or waits for it.
func (t *Table) lock() *lock {
	if t.at.lock == 0 {
		return nil
	}
	return t.locks.at(t.at.lock)
}

// fail breaks the table.
func (t *Table) fail(format string, args ...any) {
	if t.broken == nil {
		t.broken = fmt.Errorf("%w: "+format, append([]any{ErrBroken}, args...)...)
	}
}
