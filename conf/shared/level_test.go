package shared

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// program is an FSM of a program of some level.
type program struct {
	*FSM
	t  testing.TB
	at uint64
}

func newProgram(t testing.TB, known uint32) *program {
	p := &program{FSM: NewAt(known), t: t}
	p.must(testFound(t, 2).Encode())
	return p
}

func (p *program) apply(command []byte) error {
	p.t.Helper()
	p.at++
	before, digestBefore := p.Newest()
	res, err := p.Apply(p.at, command)
	if err != nil {
		if after, digestAfter := p.Newest(); after != before || digestAfter != digestBefore {
			p.t.Fatal("it stops, and has changed something")
		}
		return err
	}
	if _, now := p.Newest(); now != digest(p.State()) {
		p.t.Fatalf("the digest is %x, counted anew %x", now, digest(p.State()))
	}
	return res.(Result).Err()
}

func (p *program) must(command []byte) {
	p.t.Helper()
	if err := p.apply(command); err != nil {
		p.t.Fatal(err)
	}
}

func registerAt(n int, level uint32) []byte {
	c := testRegister(n)
	c.Register.Level = level
	return c.Encode()
}

func raiseTo(level uint32) []byte { return Command{Raise: &Raise{Level: level}}.Encode() }

// later is a command that means something else, or nothing, to programs below that level.
func later(level uint32, voters int) []byte {
	return fmt.Appendf(nil, `{"op":"set","needs":%d,"set":{"settings":{"voters":"%d"}}}`, level, voters)
}

// A command of a later level changes nothing anywhere until the cluster's level is raised, and that is raised when all programs know it.
func TestALaterCommandWaitsForTheLevel(t *testing.T) {
	p := newProgram(t, 3)
	p.must(registerAt(1, 3))
	p.must(registerAt(2, 0))
	if err := p.apply(later(2, 7)); !errors.Is(err, ErrLevel) || p.State().Settings.Voters == 7 {
		t.Fatalf("before: %v", err)
	}
	if err := p.apply(raiseTo(2)); !errors.Is(err, ErrLevel) || p.State().Raisable() != 0 {
		t.Fatalf("node 2 does not know level 2: %v", err)
	}
	again := testRegister(2)
	again.Register.Level, again.Register.Start = 2, 7
	p.must(again.Encode())
	if got := p.State().Raisable(); got != 2 {
		t.Fatalf("raisable to %d", got)
	}
	p.must(raiseTo(2))
	p.must(later(2, 7))
	if got := p.State().Settings.Voters; got != 7 {
		t.Fatalf("%d voters", got)
	}
	for name, c := range map[string][]byte{"once more": raiseTo(2), "below": raiseTo(1)} {
		if err := p.apply(c); !errors.Is(err, ErrStale) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string][]byte{"a command above": later(3, 3), "an old program comes": registerAt(3, 1), "comes back": registerAt(2, 0)} {
		if err := p.apply(c); !errors.Is(err, ErrLevel) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A program that does not know the level stops, loudly, and applies nothing more: not by the log, and not by a snapshot.
func TestAnOldProgramStops(t *testing.T) {
	next, old := newProgram(t, 2), newProgram(t, 1)
	for _, p := range []*program{next, old} {
		p.must(registerAt(1, 2))
	}
	next.must(raiseTo(2))
	for _, c := range [][]byte{raiseTo(2), later(1, 7), []byte("nothing")} {
		if err := old.apply(c); !errors.Is(err, ErrOldProgram) || !strings.Contains(err.Error(), "level 2, and this program knows 1") {
			t.Fatalf("%s: %v", c, err)
		}
	}
	other := NewAt(1)
	if err := other.Restore(next.at, next.Snapshot()); !errors.Is(err, ErrOldProgram) || other.State().Cluster != "" {
		t.Fatalf("restored: %v", err)
	}
	third := NewAt(3)
	if err := third.Restore(next.at, next.Snapshot()); err != nil || third.State().AppliedBy() != 2 || third.Digest() != next.Digest() {
		t.Fatalf("%v, level %d", err, third.State().AppliedBy())
	}
}

// What this program writes at level 1 programs without levels read, and the other way round.
func TestLevelOneIsWrittenAsBefore(t *testing.T) {
	if text := string((Command{Lead: &Lead{Term: 3}}).Encode()); text != `{"op":"lead","lead":{"term":3}}` {
		t.Error(text)
	}
	p := newProgram(t, Known)
	p.must(registerAt(1, Written(Known)))
	if text := string(p.Snapshot()); strings.Contains(text, "level") && !strings.Contains(text, "log_level") {
		t.Error(text)
	}
}

// Programs of all levels that have not stopped have applied the same.
func TestProgramsOfAllLevelsAreOneState(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		programs := []*program{newProgram(t, 1), newProgram(t, 2), newProgram(t, 3)}
		start := uint64(0)
		for range rapid.IntRange(1, 40).Draw(r, "commands") {
			level := rapid.Uint32Range(0, 4).Draw(r, "level")
			var c []byte
			switch rapid.IntRange(0, 3).Draw(r, "what") {
			case 0:
				start++
				reg := testRegister(rapid.IntRange(1, 2).Draw(r, "node"))
				reg.Register.Level, reg.Register.Start, reg.Register.Starts = level, start, []uint64{start - 1, start - 2, start - 3}
				c = reg.Encode()
			case 1:
				c = raiseTo(level)
			case 2:
				c = []byte(`{"op":"merge","needs":2,"merge":{"buckets":4}}`)
			default:
				c = later(level, 3+2*rapid.IntRange(0, 1).Draw(r, "voters"))
			}
			for _, p := range programs {
				_ = p.apply(c)
			}
			newest := programs[2]
			for _, p := range programs[:2] {
				if p.stop != nil {
					if p.known >= newest.State().AppliedBy() && newest.stop == nil {
						r.Fatalf("a program of level %d has stopped at level %d", p.known, newest.State().AppliedBy())
					}
					continue
				}
				if newest.stop == nil && (p.Digest() != newest.Digest() || p.State().AppliedBy() > p.known) {
					r.Fatalf("a program of level %d has come apart at %s", p.known, c)
				}
			}
		}
	})
}
