package flow

import (
	"testing"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

// TestProposer: one command at a time; one whose outcome is not known comes again after a while with what was asked since; what is
// refused for ever is told.
func TestProposer(t *testing.T) {
	p := NewProposer(8)
	ask := func(bucket uint32, epoch uint64) {
		p.Add(Ask{bucket, chain.View{Epoch: epoch, Chain: []chain.Member{{Node: 1, Inc: 1}}, InSync: 1}})
	}
	next := func(now int64, some bool, at int64) {
		t.Helper()
		if command, again := p.Next(now); (command != nil) != some || again != at {
			t.Fatalf("at %d: a command: %t, again at %d", now, command != nil, again)
		}
	}
	state := &shared.State{Views: []chain.View{{Epoch: 1}, {Epoch: 1}, {Epoch: 1}}}
	next(0, false, 0)
	ask(0, 2)
	next(0, true, 0)
	ask(1, 2)
	next(1, false, 0) // one is on its way
	if refused := p.Done(10, false, shared.Result{}, state); refused != nil || p.InFlight() != 0 {
		t.Fatalf("refused %v, in flight %d", refused, p.InFlight())
	}
	next(10, false, 10+askAgain)
	ask(2, 2)
	next(10+askAgain, true, 0)
	if p.InFlight() != 3 {
		t.Fatalf("%d questions in the next command", p.InFlight())
	}
	state.Views[0].Epoch, state.Views[2].Epoch = 2, 5
	refused := p.Done(20+askAgain, true, shared.Result{Taken: []uint32{0}}, state)
	if len(refused) != 1 || refused[0].Bucket != 1 {
		t.Fatalf("refused %v: bucket 0 was taken, bucket 2 is further", refused)
	}
	next(20+askAgain, false, 0)
	ask(0, 3)
	p.Committed(0, 3) // somebody else made it
	next(20+askAgain, false, 0)
}
