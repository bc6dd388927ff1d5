package parking

import (
	"time"

	"github.com/opencluster/oclocks/bucket/replicated"
)

const (
	// Time is how long a request may stand at a bucket that nobody can answer for, which a fail-over explains.
	Time = 3 * time.Second

	// MaxHops is how often a request is passed on, while its bucket changes hands.
	MaxHops = 3

	// LingerStep is how long a request is put off at a time.
	LingerStep = 2 * time.Millisecond

	// lingerTime is for how long it is put off in all: longer than it takes until a committed view is known everywhere.
	lingerTime = 20 * time.Millisecond
)

// Trip is what a request has been through.
type Trip struct {
	Hops    int   // how often it is passed on with the next time; 0: its caller chose the bucket's subject
	until   int64 // when it is given up; 0: it was not parked on this node
	lingers int64 // until when it is put off before it is passed on again; 0: it was not
}

// Bucket is what a node knows of a bucket that does not take a request.
type Bucket struct {
	Turned replicated.Turned // what the bucket said, or would say now
	Gone   bool              // Turned is Elsewhere, and messages do not reach the node that is the primary
}

// orphaned says whether nobody can be asked about the bucket, as far as the node knows.
func (b Bucket) orphaned() bool {
	return b.Turned == replicated.Later || b.Turned == replicated.Elsewhere && b.Gone
}

// Way is what is to be done with a request.
type Way uint8

// The ways of a request.
const (
	Parked     Way = iota // nothing: it stands at the bucket now
	Forward               // pass it on to the node of the primary
	Linger                // put it into the queue again after [LingerStep]
	Again                 // put it into the queue again for the bucket that its name belongs to now
	Moved                 // tell its caller that the bucket has another primary
	Misplaced             // tell its caller that the name belongs to another bucket
	NoPrimary             // refuse it: nobody can answer for the bucket
	Overloaded            // refuse it: too much is waiting
)

// linger says whether a request is put off once more.
func (t *Trip) linger(now int64) bool {
	if t.lingers == 0 {
		t.lingers = now + int64(lingerTime)
	}
	return now < t.lingers
}
