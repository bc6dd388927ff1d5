package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// diary is a Shell that writes down what it is asked for.
type diary struct {
	lines []string
	begin func()
	fails string // at this line
	n     *Node
}

func (d *diary) note(format string, args ...any) error {
	line := fmt.Sprintf(format, args...)
	d.lines = append(d.lines, line)
	if d.fails != "" && strings.HasPrefix(line, d.fails) {
		return errors.New("it fails")
	}
	return nil
}

func (d *diary) Begin() {
	_ = d.note("begin")
	if d.begin != nil {
		d.begin()
	}
}

func (d *diary) Dropped(from uint64, _ error) { _ = d.note("dropped a frame of %d", from) }
func (d *diary) Save(p *Persist) error        { return d.note("save %d entries", len(p.Entries)) }
func (d *diary) Send(m Message)               { _ = d.note("send to %d", m.To) }
func (d *diary) Restore(*FSMState) error      { return d.note("restore") }
func (d *diary) Digest() uint64               { return 0 }
func (d *diary) State() []byte                { return []byte("state") }
func (d *diary) Publish()                     { _ = d.note("publish, leading %t", d.n.Leading()) }
func (d *diary) Tell(e Event)                 { _ = d.note("tell %T", e) }

func (d *diary) Apply(c *Command) (any, error) { return len(c.Data), d.note("apply %s", c.Data) }

func (d *diary) End(id uint64, e End) { _ = d.note("end %d: %d, %v", id, e.Outcome, e.Result) }

// lone is a group of one, which leads.
func lone(t *testing.T) (*Node, *diary) {
	t.Helper()
	first := Found(1, []byte("state"))
	var start Start
	start.Merge(&first)
	cfg := testConfig()
	cfg.ID, cfg.Life = 1, 1
	n, err := New(cfg, start, 0)
	if err != nil {
		t.Fatal(err)
	}
	d := &diary{n: n}
	if err := n.CarryOut(d); err != nil {
		t.Fatal(err)
	}
	return n, d
}

// What is said rests on what is stored, what is told on what is applied, and whoever hears of it finds it published.
func TestATurnInItsOrder(t *testing.T) {
	n, d := lone(t)
	if !slices.Contains(d.lines, "tell core.Leadership") {
		t.Fatalf("it does not lead: %v", d.lines)
	}
	d.lines = nil
	d.begin = func() {
		if err := n.Propose(1, []byte("hello"), Condition{}); err != nil {
			t.Error(err)
		}
	}
	if err := n.Turn(1e6, &Inputs{Frames: []Frame{{From: 7, Body: []byte("no frame")}}}, d); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"dropped a frame of 7", "begin", "save 1 entries", "apply hello", "publish, leading true", "end 1: 1, 5", "publish, leading true",
	}
	if !slices.Equal(d.lines, want) {
		t.Fatalf("%q, want %q", d.lines, want)
	}
}

// After a failure nothing of what comes behind it is begun.
func TestATurnThatFails(t *testing.T) {
	for _, at := range []string{"save", "apply"} {
		n, d := lone(t)
		d.lines, d.fails = nil, at
		d.begin = func() { _ = n.Propose(1, []byte("hello"), Condition{}) }
		if err := n.Turn(1e6, &Inputs{}, d); err == nil {
			t.Fatalf("%s: no error", at)
		}
		if last := d.lines[len(d.lines)-2]; !strings.HasPrefix(last, at) || slices.ContainsFunc(d.lines, func(l string) bool { return strings.HasPrefix(l, "end") }) {
			t.Errorf("%s: %q", at, d.lines)
		}
	}
}

// Calls that the node has refused leave no gap among those that change something.
func TestCallIDsHaveNoGap(t *testing.T) {
	var ids CallIDs
	first, refused := ids.Next(true), ids.Next(true)
	ids.Taken(refused)
	other := ids.Next(false)
	ids.Taken(other)
	if second := ids.Next(true); first != refused || second != first+1 || other>>63 == 0 || ids.Next(false) == other {
		t.Errorf("%d, %d, %d, %x", first, refused, second, other)
	}
}
