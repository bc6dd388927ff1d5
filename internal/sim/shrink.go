package sim

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

var (
	inBrackets = regexp.MustCompile(`[\[{(][^\[\](){}]*[\])}]`)
	quoted     = regexp.MustCompile(`"[^"]*"`)
	numbers    = regexp.MustCompile(`[0-9][0-9a-z.]*`)
	classWords = 8
)

// Class is what a violation is about, without the numbers and names of this one: two of one class are taken for the same.
func Class(wrong string) string {
	wrong, _, _ = strings.Cut(strings.TrimSpace(wrong), "\n")
	if _, after, ok := strings.Cut(wrong, " "); ok { // the time
		wrong = after
	}
	wrong = numbers.ReplaceAllString(inBrackets.ReplaceAllString(quoted.ReplaceAllString(wrong, `""`), ""), "#")
	words := strings.Fields(wrong)
	return strings.Join(words[:min(len(words), classWords)], " ")
}

// Command is what replays the run of a recipe.
func (r Recipe) Command() string {
	var b strings.Builder
	fmt.Fprintf(&b, "go run ./internal/sim/simulate -seed=%d", r.Seed)
	if len(r.Without) > 0 {
		fmt.Fprintf(&b, " -without=%q", strings.Join(r.Without, ","))
	}
	if len(r.Skip) > 0 {
		fmt.Fprintf(&b, " -skip=%s", strings.Trim(strings.ReplaceAll(fmt.Sprint(r.Skip), " ", ","), "[]"))
	}
	if r.Nodes > 0 {
		fmt.Fprintf(&b, " -nodes=%d", r.Nodes)
	}
	if r.Clients > 0 {
		fmt.Fprintf(&b, " -clients=%d", r.Clients)
	}
	if r.Time > 0 {
		fmt.Fprintf(&b, " -trouble=%v", r.Time)
	}
	if r.Theme != "" {
		fmt.Fprintf(&b, " -theme=%q", r.Theme)
	}
	return b.String()
}

// shrinking looks for a smaller recipe that breaks the same promise.
type shrinking struct {
	best  Recipe
	last  *world // what the best one did
	class string
	until time.Time
	runs  int
}

// Shrink makes a recipe that fails smaller, for as long as told: without kinds of faults, without single ones, with fewer clients and
// nodes, and with less time, while the same class of violation remains. runs is how many runs that took.
func (r Recipe) Shrink(limit time.Duration) (small Recipe, runs int) {
	w := r.run(false)
	if len(w.wrong) == 0 {
		return r, 1
	}
	s := &shrinking{best: r, last: w, class: Class(w.wrong[0]), until: time.Now().Add(limit), runs: 1}
	for before := -1; before != s.size() && time.Now().Before(s.until); {
		before = s.size()
		s.time()
		s.kinds()
		s.causes()
		s.people()
	}
	return s.best, s.runs
}

// size falls while there is something to gain.
func (s *shrinking) size() int {
	return len(s.last.caused) + s.last.mix.clients + s.last.mix.nodes + int(s.last.now/second) - len(s.best.Without)
}

// try takes a recipe if it fails in the same way.
func (s *shrinking) try(r Recipe) bool {
	if time.Now().After(s.until) {
		return false
	}
	s.runs++
	w := r.run(false)
	if len(w.wrong) == 0 || Class(w.wrong[0]) != s.class {
		return false
	}
	s.best, s.last = r, w
	return true
}

// with is the best recipe with something changed.
func (s *shrinking) with(change func(r *Recipe)) bool {
	r := s.best
	r.Without, r.Skip = slices.Clone(r.Without), slices.Clone(r.Skip)
	change(&r)
	return s.try(r)
}

// time ends the trouble earlier.
func (s *shrinking) time() {
	failed := s.last.now - s.last.began
	for _, t := range []int64{failed / 4, failed / 2, failed * 3 / 4, failed} {
		if t < s.last.mix.time && s.with(func(r *Recipe) { r.Time = max(time.Duration(t).Round(100*time.Millisecond), time.Second) }) {
			return
		}
	}
}

// kinds leaves out what was drawn for the whole run, and kinds of faults.
func (s *shrinking) kinds() {
	for _, k := range knobs {
		before := s.last.mix.String()
		if off := s.last.mix; !s.best.without(k.name) {
			if k.off(&off); off.String() != before {
				s.with(func(r *Recipe) { r.Without = append(r.Without, k.name) })
			}
		}
	}
	seen := map[string]bool{}
	for _, c := range slices.Clone(s.last.caused) {
		if !seen[c.Kind] {
			seen[c.Kind] = true
			s.with(func(r *Recipe) { r.Without = append(r.Without, c.Kind) })
		}
	}
}

// causes leaves out single faults: halves of them first, then smaller parts.
func (s *shrinking) causes() {
	for parts := 2; ; parts *= 2 {
		list := slices.Clone(s.last.caused)
		if len(list) == 0 {
			return
		}
		size := max(1, len(list)/parts)
		for part := range slices.Chunk(list, size) {
			s.with(func(r *Recipe) {
				for _, c := range part {
					if !r.skips(c.Index) {
						r.Skip = append(r.Skip, c.Index)
					}
				}
			})
		}
		if size == 1 {
			return
		}
	}
}

// people makes do with fewer clients and nodes.
func (s *shrinking) people() {
	for n := 1; n < s.last.mix.clients; n++ {
		if s.with(func(r *Recipe) { r.Clients = n }) {
			break
		}
	}
	for n := 2; n < s.last.mix.nodes; n++ {
		if s.with(func(r *Recipe) { r.Nodes = n }) {
			break
		}
	}
}
