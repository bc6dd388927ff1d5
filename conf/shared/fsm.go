package shared

import (
	"cmp"
	"maps"
	"slices"
	"sync/atomic"
)

// FSM applies the commands of the control plane, one after the other. Its methods are called by one goroutine, but State and
// Digest, which anybody may call.
type FSM struct {
	now atomic.Pointer[version]
}

// version is a state with the digest of its content.
type version struct {
	state  *State
	digest uint64
}

// New is the configuration of a cluster that was not founded yet.
func New() *FSM {
	f := &FSM{}
	s := &State{Settings: DefaultSettings()}
	f.now.Store(&version{s, digest(s)})
	return f
}

// State is the configuration as of the last change.
func (f *FSM) State() *State { return f.now.Load().state }

// Digest is a number made of all content, but not of the change ID: nodes with the same change ID and another digest are
// not copies of each other.
func (f *FSM) Digest() uint64 { return f.now.Load().digest }

// Newest gives State and Digest as of the same change.
func (f *FSM) Newest() (*State, uint64) {
	v := f.now.Load()
	return v.state, v.digest
}

// Apply carries out a command under its change ID. What comes back is a Result. A refused command changes nothing but
// State.Change.
func (f *FSM) Apply(change uint64, command []byte) any {
	was := f.now.Load()
	res := Result{Change: change}
	next := *was.state
	next.Change = change
	t := &turn{next: next, res: &res, digest: was.digest}
	c, err := decode(command)
	if err == nil {
		err = t.run(&c)
	}
	if err != nil {
		kept := *was.state
		kept.Change = change
		f.now.Store(&version{&kept, was.digest})
		return Result{Change: change}.refuse(err)
	}
	f.now.Store(&version{&t.next, t.digest})
	return res
}

// turn is one command at work: next becomes the state if nothing fails. What it changes it copies first.
type turn struct {
	next   State
	res    *Result
	digest uint64
}

func (t *turn) run(c *Command) error {
	return ErrCommand
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

func digest(*State) uint64 { return 0 }

// Snapshot is the whole state, for Restore on another node.
func (f *FSM) Snapshot() []byte { return nil }

// Restore replaces the state by a snapshot that was taken after that change. ErrSnapshot if it is none; nothing has changed
// then.
func (f *FSM) Restore(change uint64, snapshot []byte) error { return ErrSnapshot }
