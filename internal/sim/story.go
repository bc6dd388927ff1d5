package sim

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

func (w *world) stamp() string { return stamp(w.now) }

func stamp(at int64) string { return fmt.Sprintf("%12.6f", float64(at)/float64(second)) }

// tell adds to the story, if it is to be told. Nothing may be drawn or changed for the sake of its arguments.
func (w *world) tell(format string, args ...any) {
	if w.telling {
		w.story.add(line{w.now, fmt.Sprintf(format, args...)})
	}
}

// storyMost is how many lines of the story are kept: the last ones.
const storyMost = 20_000

type line struct {
	at   int64
	text string
}

func (l line) String() string { return stamp(l.at) + " " + l.text }

// story has the last events.
type story struct {
	lines []line
	head  int
}

func (s *story) add(l line) {
	if len(s.lines) < storyMost {
		s.lines = append(s.lines, l)
		return
	}
	s.lines[s.head] = l
	s.head = (s.head + 1) % storyMost
}

// all gives the lines in their order.
func (s *story) all() []line { return append(slices.Clone(s.lines[s.head:]), s.lines[:s.head]...) }

var (
	lockName   = regexp.MustCompile(`\b[exms][0-9]{1,2}\b`)
	fromClient = regexp.MustCompile(`^(c[0-9]+|z[0-9]+\.[a-z]+[0-9.]+) `)
)

// about gives the last lines that matter for what is wrong: what goes wrong and what the cluster decides, and of what clients ask and
// hear what is about the locks that are named there.
func (s *story) about(wrong []string, n int) []string {
	concerned := lockName.FindAllString(strings.Join(wrong, "\n"), -1)
	var out []string
	for _, l := range s.all() {
		if len(concerned) > 0 && fromClient.MatchString(l.text) && !slices.ContainsFunc(lockName.FindAllString(l.text, -1), func(name string) bool {
			return slices.Contains(concerned, name)
		}) {
			continue
		}
		out = append(out, l.String())
	}
	return out[max(0, len(out)-n):]
}
