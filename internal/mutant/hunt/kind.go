package main

import (
	"strings"

	"github.com/opencluster/oclocks/internal/check"
)

// kind is what a violation says.
type kind uint8

// The kinds, the best one last: only a broken promise is a find.
const (
	nothing     kind = iota
	crash            // a panic, or a part of the simulated process that failed
	stuck            // healed, the cluster does not come together
	copiesApart      // a copy raises an alert though nothing was damaged
	promise          // what clients and the control plane were told cannot be
)

var kindNames = [...]string{"nothing", "a part failed", "it does not come together", "a copy stopped itself", "a promise is broken"}

func (k kind) String() string { return kindNames[k] }

// checkers are those of internal/check: what they say begins with the promise.
var checkers = []check.Promise{
	check.Exclusion, check.Tokens, check.Kept, check.Over, check.Queue, check.Wait, check.Once, check.Zones, check.Linear,
}

// rules tell of what only the simulator sees, by what a violation says which checker it is of, and what that is worth. The first that fits counts.
var rules = []struct {
	says    string // part of the text
	checker string
	kind    kind
}{
	{"panic:", "a panic", crash},
	{" believes in ", "believed intervals", promise},
	{" are taken", "believed intervals", promise},
	{"was told before it was asked for", "tokens rise", promise},
	{"is given to ", "tokens never come twice", promise},
	{"in the order of tokens", "waiters are not overtaken", promise},
	{" twice: token", "one effect", promise},
	{"was refused ", "one effect", promise},
	{" and is refused:", "one effect", promise},
	{"and it is gone", "answered is kept", promise},
	{"was answered, and it is held", "answered is kept", promise},
	{"which has no limit", "answered is kept", promise},
	{" has released ", "one effect", promise},
	{" answers in epoch ", "one answering primary", promise},
	{" may answer in epoch ", "one answering primary", promise},
	{" has a second view ", "one view for each epoch", promise},
	{"come apart at change", "equal logs", promise},
	{" elsewhere", "equal logs", promise},
	{"differs from the primary's", "equal copies", promise},
	{"does not take what the chain has", "equal copies", promise}, // a copy finds itself what unsettled would have found at the end
	{"is not in the history of", "confirmed is kept", promise},    // a copy has found that out, and no recovery gave it up
	{"alerts about bucket", "no alert without damage", copiesApart},
	{"does not come together", "everything comes together", stuck},
	{"goes round and round", "nothing goes round and round", stuck},
}

// judge says which checker a violation is of.
func judge(text string) (checker string, worth kind) {
	for _, p := range checkers {
		if rest, ok := strings.CutPrefix(stamp.ReplaceAllString(text, ""), string(p)); ok && (rest[0] == ',' || rest[0] == ':') {
			return string(p), promise
		}
	}
	for _, r := range rules {
		if strings.Contains(text, r.says) {
			return r.checker, r.kind
		}
	}
	return "a part failed", crash
}
