package machine

import "github.com/opencluster/oclocks/subjects"

// Whoever comes back with a session's secret begins above the numbers of the processes before him, by clocks (above). Where those are
// wrong, or when two begin in one millisecond, his numbers may be below what another process has told a bucket that it awaits no more:
// `done`. That bucket cannot tell them from old ones and refuses them, and changes nothing; it tells the highest number that it knows.
// Then the request is asked again with a number above that.
//
// A request with another number is another request, so the first one must have had no effect. While a call is under way none of its
// own process's requests has a done above its number, since done is the lowest of those numbers. So another process has told the one
// that refuses it, with another opening of the session. Had the request been carried out before, the bucket would know this process's
// opening, and would take a done of a later one only: then this opening is superseded, which is what a repetition is told. So
// what was sent in one opening only has had no effect if it is refused for its number. What was sent in several may have had one: two
// processes may take the session from each other in turn. Releases and renewals do the same when they are done once more, since they
// name their hold by its key. An acquire is cancelled under its old number, wherever it may wait or have been granted; if its caller has
// given it up, that cancel is under way already, and the refusal does not end it.
//
// A late copy of what was refused is refused again, and should a recovery undo the done, a grant to it is given back (lateGrant).
//
// The new numbers must not meet those of the other process in other buckets: one that is remembered there would be answered
// with its outcome. They differ from those by requests, not by time; so the step is longer than anybody's requests in a session, and
// drawn, since two processes may be told the same number. There is room for a million such steps below 2^53. Such a step puts the session's
// numbers 70 to 140 minutes ahead of the clocks (a millisecond is 2^10 of them: above). So whoever comes back within that time is below
// again, if he meets a bucket that knows them, and takes a step of his own: one refusal and one more sending for the first request.

const (
	minLeap = 1 << 32 // added to what a bucket tells, and as much again by lot
	// maxRenumber is how often one call gets another number. Twice needs another such process meanwhile.
	maxRenumber = 3
)

// renumbered takes the refusal of a call's number; false if the refusal is about something else, or is the last word.
func (m *Machine) renumbered(now int64, c *Call, why *subjects.Refusal) bool {
	s := &m.session
	if why.Above == 0 || !c.numbered() || c.given && c.Req.Op == subjects.OpAcquire || c.Req.Number == 0 || c.renumber >= maxRenumber {
		return false
	}
	if s.floor <= why.Above {
		floor := why.Above + minLeap + m.random()%minLeap
		if floor < why.Above || floor >= 1<<53 {
			return false
		}
		s.floor, s.number = floor, max(s.number, floor)
	}
	if c.Req.Op == subjects.OpAcquire && c.eras > 1 {
		req := &subjects.Request{Op: subjects.OpCancel, Name: c.Req.Name, Number: c.Req.Number}
		m.start(now, &Call{Req: req, role: toTidy})
	}
	c.renumber++
	c.era, c.eras = 0, 0
	m.again(now, c)
	return true
}
