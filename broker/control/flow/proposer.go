package flow

import (
	"slices"

	"github.com/opencluster/oclocks/conf/shared"
)

// What goes into one command.
const (
	MaxViews   = 4096
	MaxMembers = 100_000 // of all its views, which is 3 MB at the most
)

// askAgain is after how long a command whose outcome is not known is proposed again, in nanoseconds.
const askAgain int64 = 20e6

// Proposer has the views that the copies of a node ask for committed, one command at a time. Times are boot time in nanoseconds.
//
// The caller proposes what Next gives and tells Done what became of it, once, before it asks for the next; it tells Committed of
// every view before the copies learn it.
type Proposer struct {
	asks  *Asks
	batch []Ask // on its way; nil: nothing is
	again int64 // not before
}

// NewProposer has room for questions about as many buckets as limit says.
func NewProposer(limit int) *Proposer { return &Proposer{asks: NewAsks(limit)} }

// Add is Asks.Add. The view must be one that can be (chain.View.Validate), of a bucket that there is: in a command with others
// it would have them all refused.
func (p *Proposer) Add(q Ask) bool { return p.asks.Add(q) }

// Committed is Asks.Committed.
func (p *Proposer) Committed(bucket uint32, epoch uint64) { p.asks.Committed(bucket, epoch) }

// Next gives the command that is to be proposed now. Nil: none, or none before the time (0: when something has been asked).
func (p *Proposer) Next(now int64) (command []byte, at int64) {
	switch {
	case p.batch != nil:
		return nil, 0
	case now < p.again:
		return nil, p.again
	}
	if p.batch = p.asks.Take(MaxViews, MaxMembers); len(p.batch) == 0 {
		p.batch = nil
		return nil, 0
	}
	return ViewsCommand(p.batch, 0), 0
}

// Done takes the result of the command, if it is known, and gives what is refused for ever. state is that of now, which is after
// the command: that a bucket has got a newer view since is as good a reason why a question is settled.
func (p *Proposer) Done(now int64, known bool, result shared.Result, state *shared.State) (refused []Ask) {
	batch := p.batch
	p.batch = nil
	if !known {
		p.asks.Unknown()
		p.again = now + askAgain
		return nil
	}
	outcomes := make([]Outcome, len(batch))
	for i, q := range batch {
		outcomes[i] = Outcome{Bucket: q.Bucket, Committed: state.Views[q.Bucket].Epoch}
		_, outcomes[i].Taken = slices.BinarySearch(result.Taken, q.Bucket)
	}
	return p.asks.Done(outcomes)
}

// InFlight is how many questions are on their way.
func (p *Proposer) InFlight() int { return len(p.batch) }

// ViewsCommand is a command for views; term is that of the leader who has planned them, 0 if a primary asks for them.
func ViewsCommand(batch []Ask, term uint64) []byte {
	change := shared.ViewChange{Term: term, Views: make([]shared.BucketView, len(batch))}
	for i, q := range batch {
		change.Views[i] = shared.BucketView{Bucket: q.Bucket, View: q.View}
	}
	return shared.Command{Views: &change}.Encode()
}
