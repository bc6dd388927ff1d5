package sim

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// Campaign runs one seed after the other, on several cores, and goes on after failures.
type Campaign struct {
	Start  uint64        // first seed
	Seeds  uint64        // how many; 0: as long as Time
	Time   time.Duration // no seed is begun after it; 0: without end
	Jobs   int           // seeds at a time; 1 at least
	Theme  string        // the faults of all seeds; "": as each draws
	Shrink time.Duration // how long a failing seed is made smaller
	Story  int           // lines of the story of a failing seed
	Out    io.Writer     // what happens is told here
}

// shrunkMost is how many failures of a campaign are shrunk and told: of each class the first.
const shrunkMost = 5

// progressEvery is how often a campaign tells where it is.
const progressEvery = time.Minute

type campaign struct {
	Campaign
	next atomic.Uint64 // seeds that were begun

	mu     sync.Mutex
	ledger Ledger
	told   map[string]bool // classes
	shown  time.Time
}

// Run runs the campaign until it is over or ctx is, and gives its figures.
func (c Campaign) Run(ctx context.Context) Ledger {
	run := &campaign{Campaign: c, told: map[string]bool{}, shown: time.Now()}
	run.ledger = newLedger(c.Start)
	var workers sync.WaitGroup
	for range max(1, c.Jobs) {
		workers.Go(func() {
			for ctx.Err() == nil {
				n := run.next.Add(1) - 1
				if c.Seeds > 0 && n >= c.Seeds || c.Time > 0 && time.Since(run.ledger.began) >= c.Time {
					return
				}
				run.one(c.Start + n)
			}
		})
	}
	workers.Wait()
	run.ledger.end(max(1, c.Jobs))
	return run.ledger
}

func (c *campaign) one(seed uint64) {
	recipe := Recipe{Seed: seed, Theme: c.Theme}
	r := recipe.Run(0)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ledger.add(&r)
	if time.Since(c.shown) >= progressEvery {
		c.shown = time.Now()
		c.say("%s\n", c.ledger.line())
	}
	if len(r.Wrong) == 0 {
		return
	}
	class := Class(r.Wrong[0])
	c.say("seed %d: %s\n", seed, c.ledger.Failed[len(c.ledger.Failed)-1].Wrong)
	if c.told[class] || len(c.told) >= shrunkMost {
		c.say("replay it: %s\n", recipe.Command())
		return
	}
	c.told[class] = true
	c.mu.Unlock()
	text := Explain(recipe, c.Campaign.Shrink, c.Story)
	c.mu.Lock()
	c.say("%s", text)
}

func (c *campaign) say(format string, args ...any) {
	if c.Out != nil {
		fmt.Fprintf(c.Out, format, args...)
	}
}
