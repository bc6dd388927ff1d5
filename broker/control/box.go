package control

import (
	"sync"

	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

const (
	boxEvents  = 4096    // from the network: their senders repeat them
	boxNotices = 1 << 16 // from this process: fewer than buckets and nodes by far
	feedLimit  = 1024    // changes that are told one by one when the copies are slow
)

// lease is what the arbiter granted this node last.
type lease struct {
	chain.Lease
	Live int
}

// box is where callbacks leave what the desk has to do. Putting never waits. What can be told as one is told as one.
type box struct {
	mu      sync.Mutex
	wake    chan struct{} // holds one value
	feed    *flow.Feed[*shared.State]
	granted *lease
	events  []func(*desk)
	dropped uint64
}

func newBox() *box {
	views := func(s *shared.State) []chain.View { return s.Views }
	return &box{wake: make(chan struct{}, 1), feed: flow.NewFeed(feedLimit, views)}
}

func (b *box) ring() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *box) push(change uint64, state *shared.State) {
	b.mu.Lock()
	b.feed.Push(change, state)
	b.mu.Unlock()
	b.ring()
}

// open says that the copies are there.
func (b *box) open() {
	b.mu.Lock()
	b.feed.Open()
	b.mu.Unlock()
	b.ring()
}

func (b *box) grant(l lease) {
	b.mu.Lock()
	b.granted = &l
	b.mu.Unlock()
	b.ring()
}

// put leaves something to do that came from the network; it is lost if too much waits.
func (b *box) put(event func(*desk)) { b.add(event, boxEvents) }

// notice leaves something to do that came from this process.
func (b *box) notice(event func(*desk)) { b.add(event, boxNotices) }

func (b *box) add(event func(*desk), limit int) {
	b.mu.Lock()
	if len(b.events) < limit {
		b.events = append(b.events, event)
	} else {
		b.dropped++
	}
	b.mu.Unlock()
	b.ring()
}

// next gives the next change that the copies are to be told.
func (b *box) next() ([]flow.Ask, flow.Applied[*shared.State], bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.feed.Next()
}

// take empties the rest.
func (b *box) take() (granted *lease, events []func(*desk)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	granted, events = b.granted, b.events
	b.granted, b.events = nil, nil
	return granted, events
}
