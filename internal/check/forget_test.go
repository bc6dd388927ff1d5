package check

import (
	"fmt"
	"testing"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// TestWhatIsOverIsForgotten: memory does not grow with the history.
func TestWhatIsOverIsForgotten(t *testing.T) {
	k := New(Options{Keep: time.Second, Window: 20})
	const rounds = 20_000
	for i := range rounds {
		at := int64(i) * int64(10*time.Millisecond)
		id := fmt.Sprint(i)
		add := func(e Event) {
			e.At, e.Zone, e.Client = at, "z", "c"
			k.Add(&e)
		}
		token := uint64(i + 1)
		add(Event{Kind: Ask, Op: subjects.OpAcquire, Request: id, Name: "x", TTL: 5 * time.Millisecond})
		add(Event{Kind: Answer, Request: id, Code: 200, Token: token, Ticket: token, TTL: 5 * time.Millisecond})
		add(Event{Kind: Believe, Name: "x", Token: token, Until: at + 3_000_000})
		switch i % 3 {
		case 0: // its time ends it
		case 1:
			add(Event{Kind: Ask, Op: subjects.OpRelease, Request: "r" + id, Name: "x", Token: token})
			add(Event{Kind: GiveUp, Request: "r" + id})
		default:
			add(Event{Kind: Ask, Op: subjects.OpRelease, Request: "r" + id, Name: "x", Token: token})
			add(Event{Kind: Answer, Request: "r" + id, Code: 200, Token: token})
		}
	}
	if v := k.Violations(); len(v) > 0 {
		t.Fatal(v[0])
	}
	c, l := k.clients["c"], k.zones["z"].locks["x"]
	for what, n := range map[string]int{ // order: each by itself
		"requests": len(c.asks), "holds of the client": len(c.holds), "holds": len(l.holds), "believed": len(l.believed), "open": len(l.open),
		"recent": len(l.recent), "steps": len(l.window.steps), "fading": len(k.fading), "maybe": len(l.window.maybe),
	} {
		if n > 2500 {
			t.Errorf("%d %s are remembered after %d rounds", n, what, rounds)
		}
	}
}
