package bucket

import "github.com/opencluster/oclocks/subjects"

// why says how a hold, a session or a wait came to its end. The numbers are part of the format of changes and snapshots.
type why uint8

const (
	whyNone         why = iota
	whyReleased         // by request, a cancel included
	whyExpired          // its ttl is over, or the session was silent for its lease
	whyDisconnected     // the connection was closed, and the grace is over
	whyForced
	whySuperseded
	whyClosed    // the session was closed by its client
	whyTimeout   // of a wait
	whyCancelled // of a wait
	whyStopping  // of a wait
	whyEnd
)

var whyNames = [whyEnd]string{
	"", "released", subjects.WhyExpired, subjects.WhyDisconnected, subjects.WhyForced, subjects.WhySuperseded,
	subjects.WhyClosed, "timeout", "cancelled", subjects.WhyStopping,
}

func (w why) String() string { return whyNames[w] }

// asked says whether the holder itself ended the hold, and so need not be told.
func (w why) asked() bool { return w == whyReleased || w == whyClosed }

// event is the type of the lock event that tells the end of a hold.
func (w why) event() string {
	switch w {
	case whyReleased, whyClosed:
		return "released"
	case whyExpired:
		return "expired"
	case whyForced:
		return "forced"
	}
	return "lost"
}
