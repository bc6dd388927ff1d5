package sim

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
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

// lockName finds the names of locks in texts.
var lockName = regexp.MustCompile(`\b[a-z]{1,2}[0-9]{1,3}\b`)

// about gives the last lines that matter for what is wrong: what goes wrong and what the cluster decides, and of what clients ask and
// hear what is about the locks that are named there.
func (s *story) about(wrong []string, n int) []string {
	concerned := map[string]bool{}
	for _, text := range wrong {
		for _, name := range lockName.FindAllString(text, -1) {
			concerned[name] = concerned[name] || slices.Contains(lockNames, name) || name[0] == 'e'
		}
	}
	any := slices.Contains(slices.Collect(maps.Values(concerned)), true)
	var out []string
	for _, l := range s.all() {
		if any && other(l.text, concerned) {
			continue
		}
		out = append(out, l.String())
	}
	return out[max(0, len(out)-n):]
}

// other says whether a line is about other locks only.
func other(text string, concerned map[string]bool) bool {
	named := false
	for _, name := range lockName.FindAllString(text, -1) {
		if concerned[name] {
			return false
		}
		named = named || slices.Contains(lockNames, name) || name[0] == 'e'
	}
	return named
}
