package broker

import (
	"maps"
	"slices"
	"time"
)

// announcer decides which node tells an event, so that clients hear of each once: what one node publishes reaches the
// clients of all of them. Every node watches the same things. Whoever sees a change first may not be the one to tell it: each
// waits as long as its place among the nodes says, and does not tell what another has told meanwhile. So somebody tells it
// as long as anybody is there, on each side of a cut network too. It has no clock.
type announcer struct {
	seen    map[string]string // by what it is about: as it was seen last
	told    map[string]string // as clients know it
	waiting map[string]int64  // changes that are not told yet: since when, boot time in nanoseconds
}

// sight is how something looks to this node.
type sight struct {
	value string        // "" is gone
	place int           // how many nodes are to tell it rather than this one
	after time.Duration // it must have been like this for so long
}

// placeTime is how long each place waits for the one before it.
const placeTime = 300 * time.Millisecond

func newAnnouncer() *announcer {
	return &announcer{seen: map[string]string{}, told: map[string]string{}, waiting: map[string]int64{}}
}

// begin takes something as known, without telling it.
func (a *announcer) begin(sights map[string]sight) {
	for about, s := range sights { // order: each is by itself
		a.seen[about], a.told[about] = s.value, s.value
	}
}

// heard says that a node has told something.
func (a *announcer) heard(about, value string) {
	a.told[about] = value
	if a.seen[about] == value {
		delete(a.waiting, about)
	}
}

// notice is what clients are to be told.
type notice struct {
	about       string
	before, now string // "": it was not there, it is gone
}

// look takes in how everything looks and gives what this node is to tell now, and when it must look again: never if nothing
// waits. place is that of this node for what is gone. What is told once is not told again before it looks different again, also if another node tells the opposite, for
// which it will have its reasons.
func (a *announcer) look(now int64, sights map[string]sight, place int) (tell []notice, next int64) {
	for about := range a.seen { // order: each is by itself
		if _, there := sights[about]; !there {
			sights[about] = sight{place: place}
		}
	}
	next = never
	for _, about := range slices.Sorted(maps.Keys(sights)) {
		s := sights[about]
		if a.seen[about] != s.value {
			a.seen[about] = s.value
			delete(a.waiting, about)
			if a.told[about] != s.value {
				a.waiting[about] = now
			}
		}
		since, waits := a.waiting[about]
		if !waits {
			continue
		}
		if due := since + int64(s.after) + int64(s.place)*int64(placeTime); due > now {
			next = min(next, due)
			continue
		}
		tell = append(tell, notice{about, a.told[about], s.value})
		a.told[about] = s.value
		delete(a.waiting, about)
	}
	for about, value := range a.seen { // order: each is by itself
		if _, waits := a.waiting[about]; value == "" && !waits {
			delete(a.seen, about)
			delete(a.told, about)
		}
	}
	return tell, next
}
