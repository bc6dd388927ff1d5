package flow

import (
	"slices"

	"github.com/opencluster/oclocks/conf/shared"
)

// MaxStarts is how many starts a disk knows besides the present one.
const MaxStarts = shared.MaxStarts

// Starts is what a node's disk knows of the node's starts. Each is a random number, drawn by a process.
type Starts struct {
	Known  uint64   `json:"known,omitempty"`  // the last one that is known to be registered; 0: none is
	Change uint64   `json:"change,omitempty"` // of that registration
	Since  []uint64 `json:"since,omitempty"`  // those after it, oldest first: any of them may be registered
}

// Begin is what the disk must know before the start may be registered.
func (s Starts) Begin(start uint64) Starts {
	s.Since = append(slices.Clone(s.Since), start)
	if over := len(s.Since) - MaxStarts; over > 0 {
		s.Since = s.Since[over:]
	}
	return s
}

// Registered is what the disk must know after that: whatever was before cannot be the last one any more.
func (s Starts) Registered(start, change uint64) Starts { return Starts{Known: start, Change: change} }

// Before are all that the disk knows, but the present one.
func (s Starts) Before(present uint64) []uint64 {
	list := slices.DeleteFunc(slices.Clone(s.Since), func(start uint64) bool { return start == present })
	if s.Known != 0 && s.Known != present {
		list = append([]uint64{s.Known}, list...)
	}
	if over := len(list) - MaxStarts; over > 0 {
		list = slices.Delete(list, 1, 1+over) // not the one that is known
	}
	return list
}

// Older says that the disk is older than the node: a start that it does not know was registered by a change that is later than
// any registration that it knows of. Whoever says so may be behind, and then the change is not later.
func (s Starts) Older(start, change uint64) bool {
	return start != 0 && change > s.Change && start != s.Known && !slices.Contains(s.Since, start)
}
