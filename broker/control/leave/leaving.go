package leave

import (
	"errors"
	"slices"

	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/broker/control/reign"
	"github.com/opencluster/oclocks/conf/shared"
)

// AskWait is how long an answer of the leader is waited for, in nanoseconds.
const AskWait = askEvery

const (
	askEvery     int64 = 250e6 // how often the leader is told
	voteWait     int64 = 3e9   // until the others can decide without this node
	voteLook     int64 = 20e6
	transferWait int64 = 1e9 // until another node leads
	transferLook int64 = 100e6
	aloneFor           = 3 // times that the leader says that nobody else is there, or that nobody is
)

var (
	// ErrAlone says that there is no other node that this one could hand its buckets to.
	ErrAlone = errors.New("no other node can take over")
	// ErrLate says that there was no time to hand all buckets over.
	ErrLate = errors.New("not all buckets are handed over")
)

// Facts are what is known here before a Step.
type Facts struct {
	Now    int64
	Late   bool          // whoever asked for it waits no longer
	State  *shared.State // the newest that is applied
	Status core.Status
	Away   map[uint64]bool // by number: nodes that messages do not reach
}

// Heard is what has become of what was wanted last.
type Heard struct {
	Asked  bool // Ask: the leader has answered
	Others int  // Asked: so many other nodes could take over
	Moved  bool // Transfer: the arbiter has done its part
}

// Silence is that there was no answer, or that the leadership cannot be given away.
var Silence = Heard{}

// Output is what is to be done.
type Output struct {
	Ask      bool  // ask the leader to take this node's buckets
	Transfer bool  // give the leadership away
	Done     bool  // say farewell; nothing is to be done after that
	Mute     bool  // Done: ask for no lease any more
	Err      error // Done: ErrAlone, ErrLate, or nil
	Left     int   // ErrLate: this node is still primary of so many buckets
	Next     int64 // when the next Step is due if nothing happens; 0: never
}

type phase uint8

const (
	handing    phase = iota // buckets
	voting                  // until the others have a majority of their own
	abdicating              // the leadership
	gone                    // there is nothing left to do
)

type wish uint8

const (
	nothing wish = iota
	question
	transfer
)

// Leaving is one node on its way out.
type Leaving struct {
	number uint64
	phase  phase
	limit  int64 // of the phase, if it has one
	waits  wish  // what is on its way
	again  int64 // nothing more is wanted before this time
	alone  int   // times in a row that nobody else was there
	err    error
	left   int
}

// New is for the node with this number; 0: it was never registered, so that it has nothing to give away.
func New(number uint64) *Leaving {
	l := &Leaving{number: number}
	if number == 0 {
		l.phase = gone
	}
	return l
}

// Step takes what has become of the last Ask or Transfer, if that is known by now.
func (l *Leaving) Step(f Facts, heard *Heard) (out Output) {
	if heard != nil {
		l.hear(&f, heard)
	}
	if l.phase == handing {
		l.hand(&f, &out)
	}
	if l.phase == voting {
		l.vote(&f, &out)
	}
	if l.phase == abdicating {
		l.abdicate(&f, &out)
	}
	if l.phase == gone {
		return Output{Done: true, Mute: l.number != 0, Err: l.err, Left: l.left}
	}
	return out
}

// hear takes an outcome. A question's may come in the phase after the one in which it was asked.
func (l *Leaving) hear(f *Facts, heard *Heard) {
	was, nobody := l.waits, heard.Asked && heard.Others == 0
	l.waits = nothing
	switch {
	case was == transfer:
		l.again = f.Now + transferLook
		if !heard.Moved {
			l.phase = gone
		}
		return
	case l.phase != abdicating:
		l.again = f.Now + askEvery
	}
	switch {
	case l.phase == voting && nobody:
		l.turn(f, abdicating)
	case l.phase != handing:
	case !nobody && (heard.Asked || !l.everybodyAway(f)):
		l.alone = 0
	default:
		l.alone++
	}
}

// hand waits until this node is primary of nothing.
func (l *Leaving) hand(f *Facts, out *Output) {
	switch left := reign.Primaries(f.State, l.number); {
	case left == 0:
		l.turn(f, voting)
	case f.Late:
		l.err, l.left, l.phase = ErrLate, left, gone
	case l.alone >= aloneFor:
		l.err = ErrAlone
		l.turn(f, abdicating)
	case l.waits == nothing && f.Now >= l.again:
		l.waits, out.Ask = question, true
	case l.waits == nothing:
		out.Next = l.again
	}
}

// vote waits until the others can decide without this node's vote. Nobody is waited for if all others go too.
func (l *Leaving) vote(f *Facts, out *Output) {
	switch voters := f.Status.Voters; {
	case len(voters) > 2, !slices.Contains(voters, f.Status.Raft), f.Late, f.Now >= l.limit:
		l.turn(f, abdicating)
	case l.waits == nothing && f.Now >= l.again:
		l.waits, out.Ask = question, true
	default:
		out.Next = min(f.Now+voteLook, l.limit)
	}
}

// abdicate gives the leadership to the best of the others, if there is one.
func (l *Leaving) abdicate(f *Facts, out *Output) {
	switch {
	case !f.Status.Leading, f.Late, f.Now >= l.limit:
		l.phase = gone
	case l.waits == nothing && f.Now >= l.again:
		l.waits, out.Transfer = transfer, true
	default:
		out.Next = min(f.Now+transferLook, l.limit)
	}
}

// turn begins a phase.
func (l *Leaving) turn(f *Facts, next phase) {
	l.phase = next
	switch next {
	case voting:
		l.limit, l.again = f.Now+voteWait, f.Now+askEvery // the leader has just been told, or can see it
	case abdicating:
		l.limit, l.again = f.Now+transferWait, f.Now
	}
}

// everybodyAway says that this node knows of nobody else who is there.
func (l *Leaving) everybodyAway(f *Facts) bool {
	for i := range f.State.Nodes {
		if n := &f.State.Nodes[i]; n.Number != l.number && !n.Arbiter && !f.Away[n.Number] {
			return false
		}
	}
	return true
}
