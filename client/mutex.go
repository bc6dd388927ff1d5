package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/opencluster/oclocks/subjects"
)

// Mutex is an exclusive lock of a name. Its methods may be called from several goroutines, which exclude each other; so do
// two Mutexes of one name.
type Mutex struct {
	lock
}

// Mutex gives the exclusive lock of a name, 1 to 4096 bytes. Nothing is sent before it is locked.
func (c *Client) Mutex(name string, opts ...LockOption) *Mutex {
	return &Mutex{newLock(c, name, subjects.Exclusive, opts)}
}

// Lock waits in the queue of the name until the lock is granted or ctx ends; then it leaves the queue.
func (m *Mutex) Lock(ctx context.Context) (*Claim, error) { return m.take(ctx, true) }

// TryLock takes the lock if it is free. If it is not, the error is a *HeldError.
func (m *Mutex) TryLock(ctx context.Context) (*Claim, error) { return m.take(ctx, false) }

// Unlock gives the lock back, as Claim.Release does, no matter which goroutine locked it and what became of the context of
// its Lock. It returns ErrNotLocked if it is not locked, and ErrLost if the lock was lost before: it is unlocked then, and
// may be locked again.
func (m *Mutex) Unlock(ctx context.Context) error { return m.give(ctx) }

// lock is what Mutex and RWMutex have in common: the claims that were taken through it and not given back.
//
// An exclusive lock that was lost keeps its place here until it is unlocked. A goroutine that has not noticed yet must not
// unlock the lock of the next one in the same process, so the next one waits for it.
type lock struct {
	c    *Client
	opts lockOptions

	mu     sync.Mutex
	claims []*Claim
	free   chan struct{} // closed when a claim is given back; nil while nobody waits for that
}

func newLock(c *Client, name string, mode subjects.Mode, opts []LockOption) lock {
	o := c.lockOptions(name, opts)
	o.req.Mode = mode
	return lock{c: c, opts: o}
}

// Name is the lock's name.
func (l *lock) Name() string { return l.opts.req.Name }

// take acquires the lock and keeps the claim.
func (l *lock) take(ctx context.Context, wait bool) (*Claim, error) {
	lost := func(before *Claim) bool { return before.State() == Lost }
	if err := l.room(ctx, wait, lost); err != nil {
		return nil, err
	}
	claim, err := l.c.acquire(ctx, &l.opts, wait)
	if err != nil {
		return nil, err
	}
	claim.forget = l.forget
	// The broker has ended the claim before this one, or it could not have granted this one, whether that is known here yet
	// or not.
	ended := func(*Claim) bool { return true }
	for !l.keep(claim) {
		if err := l.room(ctx, wait, ended); err != nil {
			return nil, errors.Join(err, claim.Release(context.WithoutCancel(ctx)))
		}
	}
	return claim, nil
}

func (l *lock) exclusive() bool { return l.opts.req.Mode == subjects.Exclusive }

// keep puts the claim among those that were not given back; it fails if an exclusive one is there.
func (l *lock) keep(claim *Claim) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.exclusive() && len(l.claims) > 0 {
		return false
	}
	l.claims = append(l.claims, claim)
	return true
}

// room waits until no exclusive claim is left to be unlocked that is in the way.
func (l *lock) room(ctx context.Context, wait bool, inTheWay func(before *Claim) bool) error {
	for l.exclusive() {
		l.mu.Lock()
		var before *Claim
		if len(l.claims) > 0 {
			before = l.claims[0]
		}
		l.mu.Unlock()
		switch {
		case before == nil || !inTheWay(before):
			return nil
		case !wait:
			refusal := &subjects.Refusal{Code: 409, Reason: subjects.ReasonHeld, Holder: l.opts.req.Holder,
				Message: "this process has lost the lock and not unlocked it yet"}
			return heldError(l.Name(), refusal)
		}
		l.mu.Lock()
		if len(l.claims) == 0 || l.claims[0] != before {
			l.mu.Unlock()
			continue
		}
		if l.free == nil {
			l.free = make(chan struct{})
		}
		free := l.free
		l.mu.Unlock()
		select {
		case <-free:
		case <-l.c.quit:
			return fmt.Errorf("lock %q: %w", l.Name(), ErrClosed)
		case <-ctx.Done():
			return fmt.Errorf("lock %q, which this process has lost and not unlocked yet: %w", l.Name(), context.Cause(ctx))
		}
	}
	return nil
}

// forget takes out a claim that was given back.
func (l *lock) forget(claim *Claim) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.claims, claim); i >= 0 {
		l.claims = slices.Delete(l.claims, i, i+1)
		l.given()
	}
}

// given tells those who wait that a claim was given back. The caller holds mu.
func (l *lock) given() {
	if l.free != nil {
		close(l.free)
		l.free = nil
	}
}

// give releases one claim: of several, which only a shared lock has, one that was lost before all others, so that whoever
// still reads under a good one keeps it; else the oldest.
func (l *lock) give(ctx context.Context) error {
	l.mu.Lock()
	i := slices.IndexFunc(l.claims, func(cl *Claim) bool { return cl.State() == Lost })
	if i < 0 {
		i = 0
	}
	if len(l.claims) == 0 {
		l.mu.Unlock()
		return fmt.Errorf("lock %q: %w", l.Name(), ErrNotLocked)
	}
	claim := l.claims[i]
	l.claims = slices.Delete(l.claims, i, i+1)
	l.given()
	l.mu.Unlock()
	return claim.Release(ctx)
}

// acquire asks for a lock and gives its claim.
func (c *Client) acquire(ctx context.Context, o *lockOptions, wait bool) (*Claim, error) {
	name := o.req.Name
	if o.err != nil {
		return nil, o.err
	}
	claim := &Claim{c: c, done: make(chan struct{})}
	claim.hold.Owner = claim
	w := c.lend()
	w.req, w.call.Hold, w.call.Endless = o.req, &claim.hold, wait
	result, err := c.await(ctx, w)
	switch {
	case err != nil:
		return nil, fmt.Errorf("lock %q: %w", name, err)
	case result.Grant != nil:
		return claim, nil
	case result.Refusal != nil && result.Refusal.Code == 409:
		return nil, heldError(name, result.Refusal)
	}
	return nil, failed("lock", name, result)
}
