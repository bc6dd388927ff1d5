package check

import "time"

// Options say what a history may assume.
type Options struct {
	// Wild: clocks (or pauses) are beyond what was promised. Nothing is concluded from times, and tokens only never come twice.
	Wild bool
	// MaxLease is the longest lease of the cluster: a hold with a longer limit, or none, may be lost in a recovery. 0: none is longer.
	MaxLease time.Duration
	// Keep is how long what is over is kept, to notice if it comes back. 0 is DefaultKeep.
	Keep time.Duration
	// MaxViolations ends the checking: what follows from one is rarely another. 0 is DefaultMaxViolations.
	MaxViolations int
	// Window is how many requests for one lock are looked at together for an order. 0 is DefaultWindow; below 0: none are.
	Window int
	// Budget is how many steps the search for one order may take before it is given up as undecided. 0 is DefaultBudget.
	Budget int
}

// The defaults of Options.
const (
	DefaultKeep          = 10 * time.Minute
	DefaultMaxViolations = 20
	DefaultWindow        = 400
	DefaultBudget        = 200_000
)

// Remembered is how long the broker remembers the outcome of a request at least, for repeated ones.
const Remembered = 2 * time.Minute

// Promise names one promise.
type Promise string

// The promises; see the package's documentation.
const (
	Exclusion Promise = "exclusion"
	Tokens    Promise = "tokens"
	Kept      Promise = "kept"
	Over      Promise = "over"
	Queue     Promise = "queue"
	Wait      Promise = "wait"
	Once      Promise = "once"
	Zones     Promise = "zones"
	Linear    Promise = "linear"
	Malformed Promise = "malformed" // none of the broker's: the history itself makes no sense
)

// Violation is a promise that was not kept.
type Violation struct {
	Promise Promise
	At      int64
	Zone    string
	Name    string // of the lock, if it is about one
	Text    string // for people
}

// String is "promise, zone: text".
func (v Violation) String() string { return string(v.Promise) + ", zone " + v.Zone + ": " + v.Text }

// Stats counts what was looked at.
type Stats struct {
	Events    int
	Grants    int // told for the first time
	Beliefs   int
	Doubts    int
	Unknown   int // answers to requests that nobody asked, or that are forgotten
	Windows   int // histories of one lock that an order was sought for
	Undecided int // of these: given up
	Ordered   int // requests in them
}
