package check

import (
	"fmt"
)

// Checker looks at one history. It is not safe for concurrent use, and does the same for the same events.
type Checker struct {
	opt   Options
	now   int64
	stats Stats
	wrong []Violation
}

// New makes a checker of a history that is empty as yet.
func New(opt Options) *Checker {
	if opt.Keep == 0 {
		opt.Keep = DefaultKeep
	}
	if opt.MaxViolations == 0 {
		opt.MaxViolations = DefaultMaxViolations
	}
	if opt.Window == 0 {
		opt.Window = DefaultWindow
	}
	if opt.Budget == 0 {
		opt.Budget = DefaultBudget
	}
	return &Checker{opt: opt}
}

// Add takes the next event. It keeps nothing of e but its strings.
func (c *Checker) Add(e *Event) {
	if len(c.wrong) >= c.opt.MaxViolations {
		return
	}
	c.stats.Events++
	if e.At < c.now {
		c.fail(Malformed, e, "%s of %s at %d comes after an event at %d", e.Kind, e.Client, e.At, c.now)
		return
	}
	c.now = e.At
}

// End looks at what can only be said when the history is over. settled: everything was healed and had the time to come to rest,
// so that whoever still waits for an answer waits in vain.
func (c *Checker) End(at int64, settled bool) {}

// Violations are the promises that were not kept, in the order in which that was noticed.
func (c *Checker) Violations() []Violation { return c.wrong }

// Stats counts what was looked at until now.
func (c *Checker) Stats() Stats { return c.stats }

func (c *Checker) fail(p Promise, e *Event, format string, args ...any) {
	c.wrong = append(c.wrong, Violation{Promise: p, At: e.At, Zone: e.Zone, Name: e.Name, Text: fmt.Sprintf(format, args...)})
}
