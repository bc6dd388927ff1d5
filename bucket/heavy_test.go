package bucket

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// What one session may hold in a bucket ends in one change, so there is a limit, and it is told.
func TestSessionHoldsNoMoreThanOneChangeCanEnd(t *testing.T) {
	s := newSolo(t, Config{}, 0)
	long := strings.Repeat("n", subjects.MaxName-8)
	refused := false
	for i := range 10_000 {
		effects := s.ask("s", subjects.Request{Op: subjects.OpAcquire, Name: fmt.Sprintf("%s%08d", long, i)})
		if r, ok := effects[0].Body.(*subjects.Refusal); ok {
			if r.Code != 429 {
				t.Fatal(r)
			}
			refused = true
			break
		}
	}
	if !refused {
		t.Fatal("no limit")
	}
	if other := s.ask("other", subjects.Request{Op: subjects.OpAcquire, Name: "x"}); len(other) != 1 {
		t.Fatal("another session is limited too")
	}
	s.ask("s", subjects.Request{Op: subjects.OpSessionClose})
	if len(s.out.Change) > 2*maxSessionWeight {
		t.Errorf("a change of %d bytes", len(s.out.Change))
	}
	if got := s.Usage("z"); got.Holds != 1 {
		t.Errorf("left: %+v", got)
	}
}

// A closed connection of very many holds without grace ends them in changes of a bounded size, one after the other.
func TestClosedConnectionEndsManyHoldsInParts(t *testing.T) {
	s := newSolo(t, Config{}, 0)
	conn := Conn{Server: "s", CID: 1}
	name := strings.Repeat("n", 1000)
	const n = 2000
	for i := range n {
		s.feed(&Input{Kind: Request, Zone: "z", User: "u", Reply: "_INBOX.r", Key: 7,
			Session: Session{ID: "s", Incarnation: 1, Lease: time.Minute, Conn: conn},
			Req:     &subjects.Request{Op: subjects.OpAcquire, Name: fmt.Sprintf("%s%d", name, i), Has: subjects.HasGrace}})
	}
	s.feed(&Input{Kind: Disconnect, Zone: "z", Conn: conn})
	if left := s.Usage("z").Holds; left == 0 || left == n {
		t.Errorf("%d of %d holds are left after the first change", left, n)
	}
	s.now.Boot += int64(2 * time.Millisecond) // the wheel's step
	for s.Next() <= s.now.Boot {
		s.feed(&Input{Kind: Tick})
		if len(s.out.Change) > 2*maxDisconnect {
			t.Fatalf("a change of %d bytes", len(s.out.Change))
		}
	}
	if left := s.Usage("z").Holds; left != 0 {
		t.Errorf("%d holds are left", left)
	}
}
