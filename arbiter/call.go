package arbiter

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// call is something that a caller waits for.
type call struct {
	// do begins it, on the arbiter's goroutine; an error ends it.
	do func(id uint64) error
	// abandon takes it back as far as that is possible, on the arbiter's goroutine.
	abandon func(id uint64)
	// changes: once begun, it may take effect though the caller has given up.
	changes bool

	state atomic.Int32 // waiting, begun, or givenUp
	id    uint64       // once begun
	done  chan outcome // holds one
}

const (
	waiting int32 = iota
	begun
	givenUp
)

type outcome struct {
	change uint64
	result any
	err    error
}

func (c *call) end(o outcome) { c.done <- o }

// wait queues a call and waits for its end.
func (a *Arbiter) wait(ctx context.Context, c *call) outcome {
	c.done = make(chan outcome, 1)
	if err := ctx.Err(); err != nil {
		return outcome{err: err}
	}
	if err := a.queue.call(c); err != nil {
		return outcome{err: a.reason(err)}
	}
	select {
	case o := <-c.done:
		return o
	case <-ctx.Done():
	}
	if c.state.CompareAndSwap(waiting, givenUp) {
		return outcome{err: ctx.Err()} // nothing was done
	}
	a.queue.giveUp(func() {
		delete(a.calls, c.id)
		c.abandon(c.id)
	})
	select {
	case o := <-c.done: // it ended in the same moment
		return o
	default:
	}
	if c.changes {
		return outcome{err: fmt.Errorf("%w: %w", ErrUnknown, ctx.Err())}
	}
	return outcome{err: ctx.Err()}
}

// reason of a refusal: a failed arbiter is closed as well.
func (a *Arbiter) reason(err error) error {
	if failed := a.Err(); failed != nil && errors.Is(err, ErrClosed) {
		return failed
	}
	return err
}

// begin makes a call on the arbiter's goroutine.
func (a *Arbiter) begin(c *call) {
	if !c.state.CompareAndSwap(waiting, begun) {
		return
	}
	c.id = a.ids.Next(c.changes)
	a.calls[c.id] = c
	if err := c.do(c.id); err != nil {
		a.endCall(c.id, outcome{err: err})
		return
	}
	a.ids.Taken(c.id)
}

func (a *Arbiter) endCall(id uint64, o outcome) {
	if c := a.calls[id]; c != nil {
		delete(a.calls, id)
		c.end(o)
	}
}

// endCalls ends everything when the arbiter stops.
func (a *Arbiter) endCalls() {
	reason := a.reason(ErrClosed)
	for _, c := range a.queue.close() {
		if c.state.CompareAndSwap(waiting, givenUp) {
			c.end(outcome{err: reason})
		}
	}
	for id, c := range a.calls {
		err := reason
		if c.changes {
			err = fmt.Errorf("%w: %w", ErrUnknown, reason)
		}
		a.endCall(id, outcome{err: err})
	}
}
