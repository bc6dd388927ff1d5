package client

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// Locker gives the Mutex the shape of sync.Locker (and of sync.Mutex, with its TryLock), for code that knows no contexts
// and no errors. Lock waits as long as it takes, also for room in a queue or below a quota. As with package sync, Unlock of an
// unlocked lock panics; so do Lock and TryLock if they can never succeed: the client is closed, the user may not, the name is
// not valid. A lock that is lost while it is held is logged, and nothing else tells of it: prefer the methods of the Mutex.
func (m *Mutex) Locker() *Locker { return &Locker{&m.lock} }

// Locker is the shape of sync.Mutex; see Mutex.Locker.
type Locker struct {
	l *lock
}

var (
	_ sync.Locker = (*Locker)(nil)
	_ sync.Locker = (*StdRWMutex)(nil)
)

// Lock locks.
func (s *Locker) Lock() { mustLock(s.l) }

// TryLock locks and returns true if it can be done at once. It waits for the broker's answer for the time of WithTimeout.
func (s *Locker) TryLock() bool { return tryLock(s.l) }

// Unlock unlocks. It waits for the broker for the time of one round trip (WithTimeout) and goes on in the background.
func (s *Locker) Unlock() { mustUnlock(s.l) }

// StdRWMutex is the shape of sync.RWMutex; see RWMutex.Std.
type StdRWMutex struct {
	w, r Locker
}

// Std gives the RWMutex the shape of sync.RWMutex. What is said of Mutex.Locker holds for it.
func (rw *RWMutex) Std() *StdRWMutex { return &StdRWMutex{w: Locker{&rw.w}, r: Locker{&rw.r}} }

// Lock locks for writing.
func (s *StdRWMutex) Lock() { s.w.Lock() }

// TryLock locks for writing and returns true if it can be done at once.
func (s *StdRWMutex) TryLock() bool { return s.w.TryLock() }

// Unlock unlocks for writing.
func (s *StdRWMutex) Unlock() { s.w.Unlock() }

// RLock locks for reading.
func (s *StdRWMutex) RLock() { s.r.Lock() }

// TryRLock locks for reading and returns true if it can be done at once.
func (s *StdRWMutex) TryRLock() bool { return s.r.TryLock() }

// RUnlock unlocks for reading.
func (s *StdRWMutex) RUnlock() { s.r.Unlock() }

// RLocker gives a sync.Locker whose methods are RLock and RUnlock.
func (s *StdRWMutex) RLocker() sync.Locker { return &s.r }

// roomAgain is how long Lock waits before it asks again where there was no room for one more.
const roomAgain = 250 * time.Millisecond

// noRoom says whether a lock was refused because a quota or a queue is full, which passes.
func noRoom(err error) bool {
	refusal := (*subjects.Refusal)(nil)
	return errors.Is(err, ErrQuota) || errors.As(err, &refusal) && refusal.Code == 413 && refusal.Field == ""
}

func mustLock(l *lock) {
	for {
		_, err := l.take(context.Background(), true)
		switch {
		case err == nil:
			return
		case !noRoom(err):
			panic(fmt.Sprintf("oclocks: %v", err))
		}
		l.c.opts.log.Warn("no room to wait for a lock; asking again", "name", l.Name(), "error", err)
		select {
		case <-time.After(roomAgain):
		case <-l.c.quit: // the next attempt says so
		}
	}
}

func tryLock(l *lock) bool {
	ctx, cancel := context.WithTimeout(context.Background(), l.c.opts.timeout)
	defer cancel()
	_, err := l.take(ctx, false)
	if err != nil && ctx.Err() == nil && !errors.Is(err, ErrHeld) && !noRoom(err) {
		panic(fmt.Sprintf("oclocks: %v", err))
	}
	return err == nil
}

func mustUnlock(l *lock) {
	ctx, cancel := context.WithTimeout(context.Background(), l.c.opts.timeout)
	defer cancel()
	switch err := l.give(ctx); {
	case errors.Is(err, ErrNotLocked):
		panic(fmt.Sprintf("oclocks: unlock of unlocked lock %q", l.Name()))
	case err != nil:
		l.c.opts.log.Error("unlock", "name", l.Name(), "error", err)
	}
}
