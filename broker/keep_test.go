package broker_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/opencluster/oclocks/internal/brokertest"
)

// Keep-alives in a bundle are answered each by itself, as if they had come alone, in their order with what is around them.
func TestKeepAlivesInABundle(t *testing.T) {
	d := brokertest.Start(t)
	nc := connect(t, url(d))
	b := newBundler(t, nc, d, "anyone")
	if ask(t, nc, b.subject, "").text("keep") != "true" {
		t.Error("who asks for bundles is not told that they take keep-alives")
	}
	var tokens []string
	for range 3 {
		tokens = append(tokens, ask(t, nc, "locks.session-open", "{}").text("session"))
	}
	acquire := func(session int, name string) string {
		return fmt.Sprintf(`acquire {"name":%q,"session":%q,"request":1}`, name, tokens[session])
	}
	keep := func(session, beat int) string {
		return fmt.Sprintf(`keep {"session":%q,"beat":%d}`, tokens[session], beat)
	}
	got := b.answers(acquire(0, "a"), keep(0, 7), keep(2, 8), `keep {"session":"x"}`, `keep {}`, `keep {`, keep(0, 9), acquire(1, "b"), keep(1, 10), keep(0, 11))
	for i, want := range map[int]struct {
		session     int
		beat, count uint64
	}{1: {0, 7, 1}, 2: {2, 8, 0}, 6: {0, 9, 1}, 8: {1, 10, 1}, 9: {0, 11, 1}} {
		alone := ask(t, nc, "locks.keep."+d.Node()+".anyone", fmt.Sprintf(`{"session":%q,"beat":%d}`, tokens[want.session], want.beat))
		if string(got[i].msg.Data) != string(alone.msg.Data) || got[i].number("beat") != want.beat || got[i].number("count") != want.count {
			t.Errorf("keep-alive %d is told %s, and alone %s", want.beat, got[i].msg.Data, alone.msg.Data)
		}
	}
	got[0].granted()
	got[7].granted()
	got[3].refused("410", "session")
	got[4].refused("400", "bad_request")
	got[5].refused("400", "bad_request")
	for deadline := time.Now().Add(patience); b.sheaves == 0; {
		for _, l := range b.answers(keep(0, 12), keep(1, 12), keep(2, 12)) {
			if l.number("beat") != 12 {
				t.Fatalf("a keep-alive is told %s", l.msg.Data)
			}
		}
		if time.Now().After(deadline) {
			t.Fatal("no two answers ever shared a message")
		}
	}
}
