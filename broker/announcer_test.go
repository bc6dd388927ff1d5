package broker

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// crowd is some nodes that watch one thing and hear each other after a while.
type crowd struct {
	nodes []*announcer
	told  []string // "node value"
	post  []letter
	cut   func(from, to int) bool
}

type letter struct {
	at    int64
	to    int
	value string
}

func newCrowd(n int, value string) *crowd {
	c := &crowd{cut: func(int, int) bool { return false }}
	for range n {
		a := newAnnouncer()
		a.begin(map[string]sight{"x": {value: value}})
		c.nodes = append(c.nodes, a)
	}
	return c
}

// run goes on for a time in steps of 10 ms; sees says what a node sees when, and its place.
func (c *crowd) run(from, to int64, delay int64, sees func(node int, at int64) (string, int)) {
	for at := from; at < to; at += 10 {
		for _, l := range c.post {
			if l.at == at {
				c.nodes[l.to].heard("x", l.value)
			}
		}
		for i, a := range c.nodes {
			value, place := sees(i, at)
			tell, _ := a.look(at*int64(time.Millisecond), map[string]sight{"x": {value: value, place: place}}, place)
			for _, n := range tell {
				c.told = append(c.told, fmt.Sprint(i, " ", n.now))
				for to := range c.nodes {
					if !c.cut(i, to) {
						c.post = append(c.post, letter{at + delay, to, n.now})
					}
				}
			}
		}
	}
}

// Whenever each of the nodes sees a change, as long as they do so within the time of a place, one of them tells it, once.
func TestOneNodeTells(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "nodes")
		c := newCrowd(n, "up")
		start := int64(0)
		value := "up"
		for change := range rapid.IntRange(1, 4).Draw(t, "changes") {
			before, next := value, fmt.Sprint("value", change)
			value = next
			seen := make([]int64, n)
			for i := range seen {
				seen[i] = start + 10*rapid.Int64Range(0, 12).Draw(t, "seen after")
			}
			c.told = nil
			c.run(start, start+3000, 10*rapid.Int64Range(1, 10).Draw(t, "delay"), func(node int, at int64) (string, int) {
				if at < seen[node] {
					return before, node
				}
				return next, node
			})
			if len(c.told) != 1 || c.told[0] != "0 "+next {
				t.Fatalf("change %d to %s was told %q", change, next, c.told)
			}
			start += 3000
		}
	})
}

// If the one that is to tell does not, because it does not see the change or is gone, the next one does.
func TestTheNextNodeTells(t *testing.T) {
	c := newCrowd(3, "up")
	c.run(0, 3000, 20, func(node int, at int64) (string, int) {
		if node == 0 || at < 100 {
			return "up", node
		}
		return "away", node
	})
	if len(c.told) != 1 || c.told[0] != "1 away" {
		t.Errorf("told %q", c.told)
	}
}

// On both sides of a cut network somebody tells; when it is whole again nobody contradicts.
func TestBothSidesTell(t *testing.T) {
	c := newCrowd(4, "normal")
	side := func(node int) int { return node / 2 }
	c.cut = func(from, to int) bool { return side(from) != side(to) }
	c.run(0, 3000, 20, func(node int, _ int64) (string, int) { return fmt.Sprint("alone", side(node)), node % 2 })
	if len(c.told) != 2 || c.told[0] != "0 alone0" || c.told[1] != "2 alone1" {
		t.Errorf("told %q", c.told)
	}
	c.cut, c.told = func(int, int) bool { return false }, nil
	c.run(3000, 6000, 20, func(node int, _ int64) (string, int) { return "normal", node })
	if len(c.told) != 1 || c.told[0] != "0 normal" {
		t.Errorf("after the cut told %q", c.told)
	}
}

// A change that is over before it has lasted is not told, and neither is what another node told first.
func TestWhatDoesNotLastIsNotTold(t *testing.T) {
	a := newAnnouncer()
	a.begin(map[string]sight{"x": {value: "up"}})
	look := func(ms int64, value string) []notice {
		tell, _ := a.look(ms*int64(time.Millisecond), map[string]sight{"x": {value: value, after: 500 * time.Millisecond}}, 0)
		return tell
	}
	if tell := look(0, "away"); tell != nil {
		t.Errorf("told at once: %v", tell)
	}
	look(400, "up")
	if tell := look(1000, "up"); tell != nil {
		t.Errorf("told that nothing has changed: %v", tell)
	}
	look(1100, "away")
	a.heard("x", "away")
	if tell := look(2000, "away"); tell != nil {
		t.Errorf("told once more: %v", tell)
	}
	a.heard("x", "up") // another node sees it differently
	if tell := look(3000, "away"); tell != nil {
		t.Errorf("contradicts: %v", tell)
	}
	look(3100, "up")
	look(3200, "away")
	if tell := look(4000, "away"); len(tell) != 1 || tell[0] != (notice{"x", "up", "away"}) {
		t.Errorf("does not tell a new change: %v", tell)
	}
}

// What is gone is told as such, once, and forgotten.
func TestWhatIsGoneIsForgotten(t *testing.T) {
	a := newAnnouncer()
	a.begin(map[string]sight{"x": {value: "up"}})
	tell, next := a.look(0, map[string]sight{}, 1)
	if tell != nil || next != int64(placeTime) {
		t.Fatalf("told %v, again at %d", tell, next)
	}
	tell, _ = a.look(next, map[string]sight{}, 1)
	if len(tell) != 1 || tell[0] != (notice{"x", "up", ""}) || len(a.seen)+len(a.told)+len(a.waiting) != 0 {
		t.Errorf("told %v, and has %+v", tell, a)
	}
}
