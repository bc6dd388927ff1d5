package desk

import (
	"maps"
	"slices"

	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

const (
	maxEvents  = 4096    // from the network: their senders repeat them
	maxNotices = 1 << 16 // from this process: fewer than buckets and nodes by far
	feedLimit  = 1024    // changes that are told one by one when the copies are slow
	maxBuckets = 1 << 16
)

// Event is something that has happened: [Order], [Leadership], [Removed], [Route], [Hello], [Heard], [Farewell], [Never] or
// [Introduce].
type Event interface{ event() }

type (
	// Order is what a leader wants.
	Order struct {
		Term     uint64               `json:"term"`
		Seal     []plan.SealOrder     `json:"seal,omitempty"`
		HandOver []plan.HandOverOrder `json:"hand_over,omitempty"`
	}
	// Leadership is what the arbiter says of it.
	Leadership struct{ core.Leadership }
	// Removed says that this node's arbiter is no member of the group any more.
	Removed struct{}
	// Route says that the route to a node was opened or closed.
	Route struct {
		Identifier string
		Up         bool
	}
	// Hello shows that messages of a node arrive.
	Hello struct {
		Identifier string `json:"identifier"`
		Number     uint64 `json:"number"`        // 0: not registered yet
		Start      uint64 `json:"start"`         // of the process
		Ask        bool   `json:"ask,omitempty"` // answer
	}
	// Heard says that a frame of an arbiter has arrived.
	Heard struct{ Raft uint64 }
	// Farewell says that a node goes.
	Farewell struct {
		Identifier string `json:"identifier"`
		Start      uint64 `json:"start"` // of the process
	}
	// Never says that views that were asked for will not be committed (flow.Proposer.Done).
	Never struct{ Asks []flow.Ask }
	// Introduce shows the others that this node is there, so that a farewell of the process before does not count.
	Introduce struct{}
)

func (Order) event()      {}
func (Leadership) event() {}
func (Removed) event()    {}
func (Route) event()      {}
func (Hello) event()      {}
func (Heard) event()      {}
func (Farewell) event()   {}
func (Never) event()      {}
func (Introduce) event()  {}

// Inbox is where what happens waits for a Turn. What can be told as one is told as one. It is not safe for concurrent use.
type Inbox struct {
	feed    *flow.Feed[*shared.State]
	serve   bool
	granted *Lease
	events  []Event
	reports map[uint32]chain.Report
	dropped uint64
}

// NewInbox is empty.
func NewInbox() *Inbox {
	views := func(s *shared.State) []chain.View { return s.Views }
	return &Inbox{feed: flow.NewFeed(feedLimit, views), reports: map[uint32]chain.Report{}}
}

// Push takes a state after a change.
func (b *Inbox) Push(change uint64, state *shared.State) { b.feed.Push(change, state) }

// Serve says that the copies are there.
func (b *Inbox) Serve() {
	b.serve = true
	b.feed.Open()
}

// Arbiter takes what the arbiter says, on its goroutine, after the changes that it has applied before; of leases the newest counts.
// reign says that the reign wants to know that something has changed. Of the rest (core.Refusal, core.Quarantine) the desk wants
// to know nothing.
func (b *Inbox) Arbiter(e core.Event) (reign bool) {
	switch e := e.(type) {
	case core.Leadership:
		b.Notice(Leadership{e})
	case core.Granted:
		b.Grant(Lease{chain.Lease{Until: e.Until, Under: e.Under}, e.Live})
	case core.Membership:
		return true
	case core.Removed:
		b.Notice(Removed{})
	}
	return false
}

// Grant takes a lease; the newest counts.
func (b *Inbox) Grant(l Lease) { b.granted = &l }

// Sealed takes what a sealed copy has; the newest of a bucket counts.
func (b *Inbox) Sealed(bucket uint32, report chain.Report) {
	if bucket < maxBuckets {
		b.reports[bucket] = report
	}
}

// Put takes an event that came over the network; it is lost if too much waits.
func (b *Inbox) Put(e Event) { b.add(e, maxEvents) }

// Notice takes an event of this process.
func (b *Inbox) Notice(e Event) { b.add(e, maxNotices) }

// Dropped is how many events were lost.
func (b *Inbox) Dropped() uint64 { return b.dropped }

func (b *Inbox) add(e Event, limit int) {
	if len(b.events) < limit {
		b.events = append(b.events, e)
	} else {
		b.dropped++
	}
}

// Batch is what an Inbox had.
type Batch struct {
	serve   bool
	changes []told
	granted *Lease
	events  []Event
	reports []plan.BucketReport
}

type told struct {
	views []shared.BucketView
	Applied
}

// Take empties it. hold leaves views and changes where they are (a fault point of the tests on real processes).
func (b *Inbox) Take(hold bool) Batch {
	batch := Batch{serve: b.serve, granted: b.granted, events: b.events}
	b.serve, b.granted, b.events = false, nil, nil
	for !hold {
		asks, next, ok := b.feed.Next()
		if !ok {
			break
		}
		t := told{Applied: Applied{next.Change, next.State}}
		for _, q := range asks {
			t.views = append(t.views, shared.BucketView{Bucket: q.Bucket, View: q.View})
		}
		batch.changes = append(batch.changes, t)
	}
	for _, bucket := range slices.Sorted(maps.Keys(b.reports)) {
		batch.reports = append(batch.reports, plan.BucketReport{Bucket: bucket, Report: b.reports[bucket]})
	}
	clear(b.reports)
	return batch
}
