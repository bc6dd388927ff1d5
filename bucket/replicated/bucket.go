package replicated

import (
	"fmt"
	"slices"
	"time"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/subjects"
)

const (
	// tickLimit is how many timers of the table are carried out in one Tick at the most.
	tickLimit = 1024
)

// Config of one bucket on this node.
type Config struct {
	Table bucket.Config
	Chain chain.Config

	// Volatile says that nothing outlives the process, so that terms begin from wall time: see [Bucket.term].
	Volatile bool

	// Zones are the settings of the zones for every table that this bucket has. The caller may change the map between two
	// inputs, and then calls SetZone.
	Zones map[string]bucket.ZoneSettings
}

// Bucket is one bucket on this node. It is not safe for concurrent use.
type Bucket struct {
	cfg    Config
	table  *bucket.Table
	chain  *chain.Replica
	state  chain.State // as the journal has it
	number uint64      // of the last record
	sure   uint64      // confirmed, as of the last round
	acting bool        // it is primary and its table is promoted
	turn   bool        // Turn{Primary: true} was the last one
	image  imageWish
	asked  chain.View // of the control plane, the last time
	limit  int64      // before which the table grants nothing, after a recovery; 0: there is none

	recovering bool // as of the last round, answered changes may be missing

	halves   []Half // given away by changes that are not confirmed yet, or that nobody was told of yet, in their order
	level    uint32 // of how many buckets there are, all that this one was split into have begun
	known    uint32 // how many there are, told by Grow to a copy that has nothing
	count    uint32 // how many there are
	giving   int    // halves that were given out and are not known to be in the journal
	unstored bool   // the journal has nothing of this bucket, though it began with something
	stored   any    // the mark that tells when it has

	waiting queue
	recent  recent
	urgency urgency
	out     bucket.Output
	spoiled bool // the table does not take what the chain gives; the copy is stopped and begins anew
	err     error
}

// New makes a bucket of what its journal had. It does nothing before a view is installed. Errors are those of chain.New.
func New(cfg Config, start Start) (*Bucket, error) {
	b := &Bucket{cfg: cfg, table: start.Table, state: start.Chain.State, number: start.Number, sure: start.Chain.Confirmed}
	var err error
	if b.chain, err = chain.New(cfg.Chain, start.Chain); err != nil {
		return nil, fmt.Errorf("bucket %d: %w", cfg.Chain.Bucket, err)
	}
	b.state.Self = b.chain.Self()
	if b.table == nil || b.table.Born() == 0 { // a replay cannot know for how many buckets an empty table is
		b.table = bucket.New(cfg.Table)
	}
	b.settle()
	b.table.SetMaxLease(cfg.Table.Limits.MaxLease) // a table of a replay or of another bucket has another one
	b.halves, b.level, b.count = slices.Clone(start.Halves), b.table.Buckets(), cfg.Table.Buckets
	if len(b.halves) > 0 {
		b.level = b.halves[0].Table.Buckets() / 2
	}
	if start.Level != 0 {
		b.level = start.Level
	}
	b.unstored, b.stored = start.Unstored, start.Stored
	if start.Spoiled != nil {
		b.spoil(start.Chain.Delivered+1, start.Spoiled)
	}
	return b, nil
}

// settle tells a table the zones' settings.
func (b *Bucket) settle() {
	for name, settings := range b.cfg.Zones { // order: each is set by itself
		b.table.SetZone(name, settings)
	}
}

// Number is the bucket's.
func (b *Bucket) Number() uint32 { return b.cfg.Chain.Bucket }

// Table is the lock table, for reading.
func (b *Bucket) Table() *bucket.Table { return b.table }

// Chain is the copy's place in the chain, for reading and for the inputs that are the chain's alone: Receive, Install,
// Applied, Grant, Seal, HandOver, Score, Away, Join and Leave.
func (b *Bucket) Chain() *chain.Replica { return b.chain }

// Err tells why the bucket must not be used any more: what its own table has decided does not fit its history. That a copy's
// table does not take what comes from the others is no such error: see doc.go.
func (b *Bucket) Err() error { return b.err }

// SetZone tells the table what a zone has switched on.
func (b *Bucket) SetZone(name string, settings bucket.ZoneSettings) { b.table.SetZone(name, settings) }

// SetLeases tells the longest lease that is promised from now on, and how long a recovery takes, in nanoseconds: before the views
// are installed of the same change (chain.Replica.SetRecovery).
func (b *Bucket) SetLeases(longest time.Duration, recovery int64) {
	b.cfg.Table.Limits.MaxLease = longest
	b.table.SetMaxLease(longest)
	b.chain.SetRecovery(recovery)
}

// Turned says where a request belongs that could not be taken.
type Turned uint8

// What Request says.
const (
	Taken     Turned = iota // the request was given to the table; its answer comes as an effect
	Elsewhere               // another node is the primary: View().Primary()
	Later                   // this copy is the primary and cannot answer now, or nobody is
	Misplaced               // the name belongs to another bucket by now: the table was split
	Full                    // too much is waiting for confirmation
)

// Turned says what Request would say now.
func (b *Bucket) Turned() Turned {
	err := b.chain.Proposable()
	switch {
	case b.image.holding:
		return Later
	case err == nil && b.acting:
		return Taken
	case err == chain.ErrFull: //nolint:errorlint // Proposable returns it as it is
		return Full
	}
	if b.chain.Epoch() > 0 && b.chain.Primary() != b.chain.Self() {
		return Elsewhere
	}
	return Later
}

// Request gives a request to the table, if it can be taken. keep is asked about each effect, and may be nil: those that it
// refuses do not come out of this bucket; whoever takes them waits for their confirmation with Wait.
func (b *Bucket) Request(now bucket.Now, in *bucket.Input, keep func(e *bucket.Effect) bool) Turned {
	if t := b.Turned(); t != Taken {
		return t
	}
	if b.table.Buckets() > b.table.Born() && in.Req.Op.OnName() && subjects.BucketOf(in.Req.Name, b.table.Buckets()) != b.Number() {
		return Misplaced
	}
	b.step(now, in, keep)
	return Taken
}

// Tell gives the table an input that is not a request. One that cannot be taken now is dropped: it is soft.
func (b *Bucket) Tell(now bucket.Now, in *bucket.Input) {
	if b.Turned() == Taken {
		b.step(now, in, nil)
	}
}

// Keep is the table's Keep, for in.Zone and in.Session: the answer may be seen when Wait says so. If the keep-alive is the first
// that is heard of an opening, a change tells of that one; where none can be made, nothing is said, and what the session has stays.
func (b *Bucket) Keep(now bucket.Now, in *bucket.Input, beat uint64) (
	count int, hash uint64, known bool, refusal *subjects.Refusal,
) {
	if b.table.Unheard(in.Zone, &in.Session) && b.Turned() != Taken {
		b.table.Stay(now, in.Zone, &in.Session)
		return 0, 0, false, nil
	}
	count, hash, known, refusal = b.table.Keep(now, in.Zone, in.Session, beat)
	if b.table.Untold() {
		b.step(now, &bucket.Input{Kind: bucket.Heard}, nil)
	}
	return count, hash, known, refusal
}

func (b *Bucket) step(now bucket.Now, in *bucket.Input, keep func(e *bucket.Effect) bool) {
	b.out.Effects = b.out.Effects[:0]
	b.table.Step(now, in, &b.out)
	b.proposed(now, keep)
}

// proposed takes what the table has just done into the history. An answer that comes of no change waits for the one that tells of
// the opening in which it was asked for.
func (b *Bucket) proposed(now bucket.Now, keep func(e *bucket.Effect) bool) {
	told := len(b.out.Change) > 0
	if ok := b.propose(); ok && !told && b.table.Untold() {
		b.table.Step(now, &bucket.Input{Kind: bucket.Heard}, &b.out)
		b.propose()
	}
	if b.err != nil {
		return
	}
	for i := range b.out.Effects {
		if e := &b.out.Effects[i]; keep == nil || keep(e) {
			b.waiting.put(b.out.Seq, e, told)
		}
	}
}

// propose gives the chain the change that the table has just made, if there is one; it says whether that fits.
func (b *Bucket) propose() bool {
	if err := b.table.Err(); err != nil {
		b.fail(err)
		return false
	}
	b.split(b.out.Seq, b.out.Other)
	if len(b.out.Change) > 0 {
		seq, err := b.chain.Propose(b.out.Change)
		if err != nil || seq != b.out.Seq {
			b.fail(fmt.Errorf("change %d of the table is number %d of the chain (%w)", b.out.Seq, seq, err))
			return false
		}
		b.waiting.touched = append(b.waiting.touched, b.out.Zone)
	}
	return true
}

// Refused tells that the control plane will never commit this view, and that no copy of the question is on its way any
// more. It is passed on only if it is what was asked for last.
func (b *Bucket) Refused(view *chain.View) {
	if b.asked.Epoch == view.Epoch && b.asked.InSync == view.InSync && b.asked.Recovery == view.Recovery &&
		slices.Equal(b.asked.Chain, view.Chain) {
		b.chain.Refused(view.Epoch)
	}
}

// Wait has the mark come back when everything that the table says now is confirmed. Request must say Taken.
func (b *Bucket) Wait(mark any) { b.waiting.wait(b.table.Seq(), mark) }

// Next is when Tick and Round are due if no input comes before, in nanoseconds of the boot clock: now if there is something
// for Round to give.
func (b *Bucket) Next(now int64) int64 {
	next := b.chain.Next(now)
	if b.Turned() == Taken {
		next = min(next, b.table.Next())
	}
	if b.image.mark != nil {
		next = min(next, b.image.until)
	}
	if b.unstored || b.limit != 0 && b.splittable() {
		return now
	}
	return next
}

// Tick tells the time before the first other input of a turn, and carries out what is due, a bounded amount of it.
func (b *Bucket) Tick(now bucket.Now) {
	b.chain.Tick(now.Boot)
	b.putOff(now, 0)
	var keep func(e *bucket.Effect) bool
	if b.limit != 0 && b.behind() {
		keep = b.tellsOwn
	}
	for n := 0; n < tickLimit && b.table.Next() <= now.Boot && b.Turned() == Taken; n++ {
		b.step(now, &bucket.Input{Kind: bucket.Tick}, keep)
	}
}

// spoil stops a copy whose table does not take change seq, or the state up to it.
func (b *Bucket) spoil(seq uint64, err error) {
	b.spoiled = true
	b.chain.Unusable(seq, err.Error())
}

func (b *Bucket) fail(err error) {
	if b.err == nil {
		b.err = fmt.Errorf("bucket %d: %w", b.Number(), err)
	}
}
