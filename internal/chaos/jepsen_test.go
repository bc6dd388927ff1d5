package chaos

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/opencluster/oclocks/internal/e2e/daemons"
)

// A holder that stands still for longer than its lease, in the middle of an update, spoils nothing where the token is checked.
func TestNoUpdateIsLostWithFencing(t *testing.T) {
	if testing.Short() {
		t.Skip("three daemons for some seconds")
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	if err := daemons.Build(bin); err != nil {
		t.Fatal(err)
	}
	for length := 7 * time.Second; ; length *= 2 { // on a busy machine too little may happen
		f, err := Jepsen(t.Context(), JepsenConfig{Fenced: true, Length: length, TTL: time.Second, Pauses: 2 * time.Second,
			Workers: 5, Bin: bin, Dir: filepath.Join(dir, fmt.Sprint("data-", length)), Out: t.Output()})
		if err != nil {
			t.Fatal(err)
		}
		if enough := f.Pauses >= 2 && f.Refused >= 1 && f.Acknowledged >= 10; f.Lost == 0 && !enough && length < 30*time.Second {
			t.Logf("too little: %s", f)
			continue
		}
		if f.Lost != 0 || f.Pauses < 2 || f.Refused < 1 || f.Acknowledged < 10 {
			t.Errorf("%s", f)
		}
		return
	}
}

// The store itself: who was overtaken may neither write nor read where tokens are checked, and writes over others' updates where not.
func TestStore(t *testing.T) {
	for _, fenced := range []bool{true, false} {
		s, err := newStore(fenced, time.Hour, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		ask := func(req storeRequest) *storeAnswer {
			t.Helper()
			c, err := dialStore(s.listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.close()
			a, err := c.ask(&req)
			if err != nil {
				t.Fatal(err)
			}
			return a
		}
		ask(storeRequest{Worker: 1, Token: 1}) // reads, and stands still
		ask(storeRequest{Worker: 2, Token: 2})
		ask(storeRequest{Worker: 2, Token: 2, Write: true, Element: 20, Set: []int{20}})
		late := ask(storeRequest{Worker: 1, Token: 1, Write: true, Element: 10, Set: []int{10}})
		again := ask(storeRequest{Worker: 1, Token: 1})
		f := s.figures()
		if lost := map[bool]int{true: 0, false: 1}[fenced]; late.Refused != fenced || again.Refused != fenced || f.Lost != lost {
			t.Errorf("fenced %t: the late write is refused: %t, the late read: %t, %d updates are lost", fenced, late.Refused, again.Refused, f.Lost)
		}
		s.close()
	}
}
