package boottime

import (
	"sync"
	"time"
)

// goAlarmCap is the longest that a Go timer sleeps: what it sleeps while the machine is suspended is not counted, so this
// is how late it may be after a resume.
const goAlarmCap = 250 * time.Millisecond

// goAlarm is the alarm that needs nothing but Go: a timer that rings every goAlarmCap until the time has come.
type goAlarm struct {
	ring func()

	mu      sync.Mutex
	timer   *time.Timer
	closed  bool
	ringing sync.WaitGroup
}

func newGoAlarm(ring func()) *goAlarm {
	a := &goAlarm{ring: ring}
	a.timer = time.AfterFunc(time.Hour, a.rings)
	a.timer.Stop()
	return a
}

func (a *goAlarm) arm(at int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.timer.Reset(min(max(time.Duration(at-Now()), 0), goAlarmCap))
	}
}

func (a *goAlarm) rings() {
	a.mu.Lock()
	if a.closed {
		a.mu.Unlock()
		return
	}
	a.ringing.Add(1)
	a.mu.Unlock()
	defer a.ringing.Done()
	a.ring()
}

func (a *goAlarm) close() {
	a.mu.Lock()
	a.closed = true
	a.timer.Stop()
	a.mu.Unlock()
	a.ringing.Wait()
}
