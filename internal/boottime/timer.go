package boottime

import (
	"math"
	"sync"
)

// Timer fires once for each Reset, when its deadline has come. Its methods may be called from several goroutines.
type Timer struct {
	C <-chan struct{} // gets one value when the deadline of the last Reset has come; it is never closed

	fire  chan struct{} // C; holds one value
	alarm alarm

	mu       sync.Mutex
	deadline int64 // boot time; idle if no deadline is pending
	armedAt  int64 // boot time at which the alarm rings; idle if it is not armed. Never later than a pending deadline
	closed   bool
}

// idle stands for "never".
const idle = math.MaxInt64

// alarm wakes its timer up at some boot time. It may ring too early or more often than asked, never not at all.
type alarm interface {
	arm(at int64) // at is above 0; replaces what was armed
	close()       // no ring comes after it returned; called without the timer's lock
}

// NewTimer makes a timer without a deadline. Close it when it is no longer needed.
func NewTimer() *Timer { return newTimer(newAlarm) }

func newTimer(newAlarm func(ring func()) alarm) *Timer {
	fire := make(chan struct{}, 1)
	t := &Timer{C: fire, fire: fire, deadline: idle, armedAt: idle}
	t.alarm = newAlarm(t.ring)
	return t
}

// Reset sets the deadline to an absolute boot time in nanoseconds (see Now), in place of the one before. Should that one
// have fired and nobody taken the value from C yet, the value is gone after Reset. A deadline that has passed fires at once.
func (t *Timer) Reset(deadline int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.drain()
	t.deadline = max(deadline, 1)
	if t.deadline < t.armedAt {
		t.arm()
	}
}

// Stop removes the deadline: after it returned, C is empty and stays so until the next Reset.
func (t *Timer) Stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drain()
	t.deadline = idle
}

// Close stops the timer for ever and frees what it holds. It may be called again; Reset does nothing after it.
func (t *Timer) Close() {
	t.mu.Lock()
	again := t.closed
	t.closed = true
	t.drain()
	t.deadline = idle
	t.mu.Unlock()
	if !again {
		t.alarm.close() // outside the lock: a ring may be waiting for it
	}
}

func (t *Timer) drain() {
	select {
	case <-t.fire:
	default:
	}
}

func (t *Timer) arm() {
	t.armedAt = t.deadline
	t.alarm.arm(t.deadline)
}

// ring is called by the alarm, from a goroutine of its own.
func (t *Timer) ring() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return
	}
	t.armedAt = idle
	switch {
	case t.deadline == idle:
	case Now() < t.deadline:
		t.arm()
	default:
		t.deadline = idle
		t.fire <- struct{}{} // never blocks: whoever sets a deadline empties the channel
	}
}
