package shared

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/opencluster/oclocks/bucket/chain"
)

// FSM applies the commands of the control plane, one after the other. Its methods are called by one goroutine, but State,
// Digest and Newest, which anybody may call.
type FSM struct {
	now   atomic.Pointer[version]
	known uint32 // level of the program
	stop  error  // it must not go on
}

// version is a state with the digest of its content.
type version struct {
	state  *State
	digest uint64
}

// New is the configuration of a cluster that was not founded yet.
func New() *FSM { return NewAt(Known) }

// NewAt is New for a program of that level, for tests.
func NewAt(known uint32) *FSM {
	f := &FSM{known: known}
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
// State.Change. ErrOldProgram: this program does not know how the others go on from here; nothing has changed, and nothing is
// applied any more.
func (f *FSM) Apply(change uint64, command []byte) (any, error) {
	if f.stop != nil {
		return nil, f.stop
	}
	was := f.now.Load()
	t := &turn{next: *was.state, res: Result{Change: change}, digest: was.digest}
	t.next.Change = change
	c, err := Decode(command, was.state.AppliedBy())
	if err == nil {
		err = t.run(&c)
	}
	if err != nil {
		kept := *was.state
		kept.Change = change
		f.now.Store(&version{&kept, was.digest})
		return Result{Change: change}.refuse(err), nil
	}
	if t.next.AppliedBy() > f.known {
		f.stop = tooOld(f.known, t.next.Level)
		return nil, f.stop
	}
	if c.Views == nil {
		t.swap(head(was.state), head(&t.next))
	}
	f.now.Store(&version{&t.next, t.digest})
	return t.res, nil
}

// turn is one command at work: next becomes the state if nothing fails. What it changes of it, it copies first.
type turn struct {
	next   State
	res    Result
	digest uint64
}

// swap counts one entry instead of another; 0 is none.
func (t *turn) swap(old, new uint64) { t.digest ^= old ^ new }

func (t *turn) run(c *Command) error {
	founded := t.next.Cluster != ""
	switch {
	case c.Found != nil:
		return t.found(c.Found)
	case !founded:
		return fmt.Errorf("%w: the cluster was not founded yet", ErrNotFound)
	case c.Register != nil:
		return t.register(c.Register)
	case c.Views != nil:
		return t.views(c.Views)
	case c.Lead != nil:
		return t.lead(c.Lead.Term)
	case c.Raise != nil:
		return t.raise(c.Raise.Level)
	case c.Outlived != nil:
		return t.outlived(c.Outlived.Change)
	case c.Unlock != nil:
		t.next.Locked = false
		return nil
	case t.next.Locked:
		return ErrLocked
	}
	return t.edit(c)
}

// edit carries out what a locked configuration refuses.
func (t *turn) edit(c *Command) error {
	switch {
	case c.Lock != nil:
		t.next.Locked = true
		return nil
	case c.Remove != nil:
		return t.remove(c.Remove.Number)
	case c.Node != nil:
		return t.editNode(c.Node)
	case c.Set != nil:
		return t.set(c.Set.Settings)
	case c.Zone != nil:
		return t.putZone(c.Zone)
	case c.RemoveZone != nil:
		return t.removeZone(c.RemoveZone.Name)
	case c.Users != nil:
		return t.users(c.Users)
	case c.Pin != nil:
		return t.pin(c.Pin)
	case c.Unpin != nil:
		return t.unpin(c.Unpin.Bucket)
	case c.Double != nil:
		return t.double(c.Double.Buckets)
	}
	return ErrCommand
}

func (t *turn) set(values map[string]string) error {
	if len(values) == 0 {
		return fmt.Errorf("%w: no setting was named", ErrValue)
	}
	old := t.next.Settings.Acks
	s, err := t.next.Settings.setAll(values)
	if err != nil {
		return err
	}
	if s.Acks != old && (s.Acks == chain.Majority || old == chain.Majority) {
		// What was answered with one half could be looked for in the other.
		return fmt.Errorf("%w: acks: majority is chosen when the cluster is founded, and stays", ErrValue)
	}
	if s.NodeLease != t.next.Settings.NodeLease {
		// A leader waits for the end of leases that others have granted, and knows no length but its own.
		return fmt.Errorf("%w: node_lease is chosen when the cluster is founded, and stays", ErrValue)
	}
	before := t.next.Settings.MaxLease
	t.next.Settings = s
	t.lease(before)
	return nil
}

func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
