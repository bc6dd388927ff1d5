package replicated

import (
	"testing"

	"github.com/opencluster/oclocks/bucket/chain"
)

// What answers wait for is sent at once; what only has to come before long may wait for it.
func TestUrgency(t *testing.T) {
	one, two, three := chain.Member{Node: 1, Inc: 1}, chain.Member{Node: 2, Inc: 1}, chain.Member{Node: 3, Inc: 1}
	for _, inSync := range []int{2, 3} {
		r, err := chain.New(chain.Config{Self: two}, chain.Start{})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Install(chain.View{Epoch: 7, Chain: []chain.Member{one, two, three}, InSync: inSync}); err != nil {
			t.Fatal(err)
		}
		ack := func(seq uint64) chain.Message {
			return chain.Message{Kind: chain.Ack, Epoch: 7, From: two, To: one, Progress: []chain.Progress{{Member: two, Seq: seq}}}
		}
		again := ack(5)
		again.Resend = true
		all := inSync == 3
		var u urgency
		for i, c := range []struct {
			m    chain.Message
			want bool
		}{
			{chain.Message{Kind: chain.Append, Epoch: 7, From: one, To: two}, true},
			{chain.Message{Kind: chain.Append, Epoch: 7, From: two, To: three}, all},
			{chain.Message{Kind: chain.Append, Epoch: 7, From: two, To: three, Again: 1}, true},
			{ack(5), true},
			{ack(5), false}, // it only tells what those below have
			{ack(6), true},
			{again, true},
			{chain.Message{Kind: chain.Hello, Epoch: 7, From: three, To: two}, true},
		} {
			if got := u.wanted(r, &c.m); got != c.want {
				t.Errorf("%d in sync, message %d, %v: urgent %v", inSync, i, &c.m, got)
			}
		}
	}
}
