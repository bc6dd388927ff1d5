package chaos

import (
	"bufio"
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opencluster/oclocks/internal/check"
)

// storyTime is how much of the past a story tells, and storyLines how long it may be.
const (
	storyTime  = 15 * time.Second
	storyLines = 60
)

// story tells people what is wrong: each violation, the faults around it, and what the history has about that lock.
func (r *run) story(wrong []check.Violation, problems []string) {
	for _, p := range problems {
		r.say("PROBLEM: %s", p)
	}
	for i, v := range wrong {
		r.say("VIOLATION at %.3fs: %s (zone %s, lock %s)", float64(v.At-r.began)/1e9, v, v.Zone, v.Name)
		if i == 0 && v.Name != "" {
			for _, line := range r.around(v) {
				r.say("  %s", line)
			}
		}
	}
	for _, s := range r.activeSteps() {
		r.say("  at this moment: %s", s)
	}
	r.say("  its faults are in %s, its histories in %s", filepath.Join(r.dir, "run.log"), filepath.Join(r.dir, "history"))
}

// around are the events about the lock of a violation in the time before it.
func (r *run) around(v check.Violation) []string {
	type moment struct {
		at   int64
		text string
	}
	var list []moment
	paths, _ := filepath.Glob(filepath.Join(r.dir, "history", "*.jsonl")) // the pattern is right
	for _, path := range paths {
		file, err := os.Open(path)
		if err != nil {
			continue
		}
		requests := make(map[string]bool) // of the lock
		in := bufio.NewScanner(file)
		for in.Buffer(nil, 1<<20); in.Scan(); {
			at, err := lineTime(in.Bytes())
			if err != nil || at > v.At+int64(time.Second) {
				continue
			}
			text := in.Text()
			key := field(text, "client") + " " + field(text, "request")
			about := field(text, "name") == v.Name && field(text, "zone") == v.Zone
			if about && field(text, "request") != "" {
				requests[key] = true
			}
			if at >= v.At-int64(storyTime) && (about || requests[key] || strings.Contains(text, `"kind":"doubt"`)) {
				list = append(list, moment{at, text})
			}
		}
		file.Close()
	}
	slices.SortFunc(list, func(a, b moment) int { return cmp.Compare(a.at, b.at) })
	var lines []string
	for _, m := range list[max(0, len(list)-storyLines):] {
		lines = append(lines, fmt.Sprintf("%9.4fs %s", float64(m.at-r.began)/1e9, m.text[strings.Index(m.text, ",")+1:]))
	}
	return lines
}

// field is the value of a text in a line of a recording.
func field(line, name string) string {
	_, rest, ok := strings.Cut(line, `"`+name+`":"`)
	if !ok {
		return ""
	}
	value, _, _ := strings.Cut(rest, `"`)
	return value
}
