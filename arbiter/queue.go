package arbiter

import (
	"sync"

	"github.com/opencluster/oclocks/arbiter/core"
)

// Bounds of what waits for the arbiter's goroutine.
const (
	maxFrames     = 4096
	maxFrameBytes = 64 << 20
	maxCalls      = 1024
	maxPeers      = 4096
)

// queue is what waits for the arbiter's goroutine. Nothing that is put into it blocks.
type queue struct {
	wake chan struct{} // gets a value when something was put in

	mu     sync.Mutex
	closed bool
	batch
	bytes   int
	dropped uint64 // frames
}

// batch is what the goroutine takes out at once.
type batch struct {
	core.Inputs
	calls []*call
	late  []func() // from callers that gave up
}

func newQueue() *queue { return &queue{wake: make(chan struct{}, 1)} }

// change does something to the queue, unless it is closed, and wakes the goroutine.
func (q *queue) change(do func() error) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return ErrClosed
	}
	if err := do(); err != nil {
		return err
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return nil
}

func (q *queue) frame(from uint64, frame []byte) {
	_ = q.change(func() error { // what is dropped is counted
		if len(q.Frames) >= maxFrames || q.bytes+len(frame) > maxFrameBytes {
			q.dropped++
			return ErrBusy
		}
		q.Frames = append(q.Frames, core.Frame{From: from, Body: frame})
		q.bytes += len(frame)
		return nil
	})
}

func (q *queue) peer(p core.PeerState) {
	_ = q.change(func() error { // refused only when closed
		if len(q.Peers) >= maxPeers {
			q.Peers = q.Peers[1:]
		}
		q.Peers = append(q.Peers, p)
		return nil
	})
}

func (q *queue) call(c *call) error {
	return q.change(func() error {
		if len(q.calls) >= maxCalls {
			return ErrBusy
		}
		q.calls = append(q.calls, c)
		return nil
	})
}

// giveUp is bounded by the calls that were taken before.
func (q *queue) giveUp(do func()) {
	_ = q.change(func() error { // refused only when closed
		q.late = append(q.late, do)
		return nil
	})
}

func (q *queue) take() (batch, uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	b := q.batch
	q.batch, q.bytes = batch{}, 0
	return b, q.dropped
}

// close refuses everything from now on, and gives the calls that nobody will make.
func (q *queue) close() []*call {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	calls := q.calls
	q.batch = batch{}
	return calls
}
