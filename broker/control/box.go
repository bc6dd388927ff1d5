package control

import (
	"sync"

	"github.com/opencluster/oclocks/broker/control/desk"
)

// box is where callbacks leave what the desk has to do. Putting never waits.
type box struct {
	mu   sync.Mutex
	wake chan struct{} // holds one value
	in   *desk.Inbox
}

func newBox() *box { return &box{wake: make(chan struct{}, 1), in: desk.NewInbox()} }

// with puts something into the inbox.
func (b *box) with(do func(in *desk.Inbox)) {
	b.mu.Lock()
	do(b.in)
	b.mu.Unlock()
	signal(b.wake)
}

// put leaves an event that came over the network; it is lost if too much waits.
func (b *box) put(e desk.Event) { b.with(func(in *desk.Inbox) { in.Put(e) }) }

// notice leaves an event of this process.
func (b *box) notice(e desk.Event) { b.with(func(in *desk.Inbox) { in.Notice(e) }) }

// take empties it.
func (b *box) take(hold bool) desk.Batch {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.in.Take(hold)
}
