package client

import (
	"context"

	"github.com/opencluster/oclocks/subjects"
)

// RWMutex is a lock of a name that is held by one writer or by any number of readers. A waiting writer stops new readers,
// unless WithDrain says otherwise. Its methods may be called from several goroutines; the lock is not re-entrant.
type RWMutex struct {
	w lock
	r lock
}

// RWMutex gives the readers' and writers' lock of a name, 1 to 4096 bytes. Nothing is sent before it is locked.
func (c *Client) RWMutex(name string, opts ...LockOption) *RWMutex {
	rw := &RWMutex{w: newLock(c, name, subjects.Exclusive, opts), r: newLock(c, name, subjects.Shared, opts)}
	rw.r.opts.req.Drain, rw.r.opts.req.Quiet = subjects.Hard, 0 // it is about writers
	return rw
}

// Name is the lock's name.
func (rw *RWMutex) Name() string { return rw.w.Name() }

// Lock waits in the queue of the name until the lock is granted for writing or ctx ends.
func (rw *RWMutex) Lock(ctx context.Context) (*Claim, error) { return rw.w.take(ctx, true) }

// TryLock takes the lock for writing if it is free. If it is not, the error is a *HeldError.
func (rw *RWMutex) TryLock(ctx context.Context) (*Claim, error) { return rw.w.take(ctx, false) }

// Unlock gives the writer's lock back; see Mutex.Unlock.
func (rw *RWMutex) Unlock(ctx context.Context) error { return rw.w.give(ctx) }

// RLock waits until the lock is granted for reading or ctx ends.
func (rw *RWMutex) RLock(ctx context.Context) (*Claim, error) { return rw.r.take(ctx, true) }

// TryRLock takes the lock for reading if no writer holds or, with the default drain, awaits it. If one does, the error is a
// *HeldError.
func (rw *RWMutex) TryRLock(ctx context.Context) (*Claim, error) { return rw.r.take(ctx, false) }

// RUnlock gives one reader's lock back. Readers that share this RWMutex are not told apart: of their locks, one that was
// lost goes first. A reader that wants its own uses Claim.Release instead.
func (rw *RWMutex) RUnlock(ctx context.Context) error { return rw.r.give(ctx) }
