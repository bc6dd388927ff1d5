package client

import (
	"context"
	"fmt"

	"github.com/opencluster/oclocks/subjects"
)

// Semaphore is a lock of a name with a number of slots. Everybody who uses the name must use the same number.
type Semaphore struct {
	c    *Client
	opts lockOptions
}

// Semaphore gives the semaphore of a name with so many slots, 1 to 1,000,000. Nothing is sent before slots are taken.
func (c *Client) Semaphore(name string, slots int, opts ...LockOption) *Semaphore {
	s := &Semaphore{c: c, opts: c.lockOptions(name, opts)}
	if slots < 1 || slots > subjects.MaxSlots {
		s.opts.err = fmt.Errorf("semaphore %q: %w: %d slots, expected 1 to %d", name, ErrBadRequest, slots, subjects.MaxSlots)
		return s
	}
	s.opts.req.Mode, s.opts.req.Slots = subjects.Semaphore, uint32(slots)
	return s
}

// Name is the semaphore's name.
func (s *Semaphore) Name() string { return s.opts.req.Name }

// Acquire waits until n slots, 1 to all of them, are granted together, or ctx ends. They are given back by Claim.Release.
func (s *Semaphore) Acquire(ctx context.Context, n int) (*Claim, error) { return s.take(ctx, n, true) }

// TryAcquire takes n slots if they are free and nobody waits. If not, the error is a *HeldError.
func (s *Semaphore) TryAcquire(ctx context.Context, n int) (*Claim, error) {
	return s.take(ctx, n, false)
}

func (s *Semaphore) take(ctx context.Context, n int, wait bool) (*Claim, error) {
	o := s.opts
	if o.err == nil && (n < 1 || n > int(o.req.Slots)) {
		return nil, fmt.Errorf("semaphore %q: %w: %d slots, expected 1 to %d", s.Name(), ErrBadRequest, n, o.req.Slots)
	}
	o.req.Take = uint32(n)
	return s.c.acquire(ctx, &o, wait)
}
