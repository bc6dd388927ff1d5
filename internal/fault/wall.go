package fault

import (
	"strconv"
	"sync/atomic"
	"time"
)

// shiftEvery is how often a daemon looks whether its wall clock was moved.
const shiftEvery = 20 * time.Millisecond

var (
	shift   atomic.Int64 // nanoseconds
	shifted atomic.Int64 // when the file was last looked at: nanoseconds since began
	began   = time.Now()
)

// Wall is the wall clock. A test moves it with "clock.wall=N", N being seconds; nothing else may depend on it than what is shown to
// people and what begins numbers that rise.
func Wall() time.Time {
	now := time.Now()
	if file == "" {
		return now
	}
	if at := int64(now.Sub(began)); at-shifted.Load() > int64(shiftEvery) {
		shifted.Store(at)
		seconds, err := strconv.Atoi(Value("clock.wall"))
		if err != nil {
			seconds = 0
		}
		shift.Store(int64(time.Duration(seconds) * time.Second))
	}
	return now.Add(time.Duration(shift.Load()))
}
