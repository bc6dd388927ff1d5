package chain

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// MaxChain is the most members that a chain may have, and the most nodes that may be joining behind it.
const MaxChain = 64

// Member is one copy of the bucket: a node, and which of its lives. A copy that has lost its state, or has thrown it away,
// is another member: that is how nothing can be counted that a node had and has no more. The zero Member is none.
type Member struct {
	Node uint64 // the node's identifier, never 0
	Inc  uint64 // incarnation of the node for this bucket; a higher one is a later life
}

func (m Member) String() string {
	if m == (Member{}) {
		return "none"
	}
	return fmt.Sprintf("%d.%d", m.Node, m.Inc)
}

// View is what the control plane has committed about the bucket. There is one view for each epoch, and the next one is
// committed only by comparing with the epoch of the one before.
type View struct {
	Epoch uint64 // 1 and up; a view follows the one with Epoch-1

	// Chain has the copies in the order in which changes pass: the primary, the first secondary, ..., the tail.
	Chain []Member

	// InSync says how many members from the head of Chain are the in-sync set: the members of which every answer of this
	// view needs (by the rule of [Acks]) the confirmation. At least 1, since the primary is one. That the set is always a
	// head of the chain means that nobody of it waits for a node that does not count.
	InSync int

	// Recovery says that this view, or one before it since the last without the flag, was committed without any member of
	// the in-sync set before it: answered changes may be missing.
	Recovery bool
}

// Primary is the head of the chain, none in the zero View.
func (v *View) Primary() Member {
	if len(v.Chain) == 0 {
		return Member{}
	}
	return v.Chain[0]
}

// Tail is the end of the chain, none in the zero View.
func (v *View) Tail() Member {
	if len(v.Chain) == 0 {
		return Member{}
	}
	return v.Chain[len(v.Chain)-1]
}

// Members is the in-sync set, a part of Chain.
func (v *View) Members() []Member { return v.Chain[:v.InSync] }

// Place is the member's place in the chain, 0 for the primary, -1 for one that is not in it.
func (v *View) Place(m Member) int { return slices.Index(v.Chain, m) }

// Counts says whether the member belongs to the in-sync set.
func (v *View) Counts(m Member) bool { return slices.Contains(v.Members(), m) }

// Clone is a copy that shares nothing.
func (v View) Clone() View {
	v.Chain = slices.Clone(v.Chain)
	return v
}

// same says whether two views differ in nothing but the epoch.
func (v *View) same(w *View) bool {
	return v.InSync == w.InSync && v.Recovery == w.Recovery && slices.Equal(v.Chain, w.Chain)
}

// String draws the view with the in-sync set in brackets: "e7 [1.1 2.1] 3.1".
func (v View) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "e%d [", v.Epoch)
	for i, m := range v.Chain {
		switch {
		case i == v.InSync:
			b.WriteString("] ")
		case i > 0:
			b.WriteString(" ")
		}
		b.WriteString(m.String())
	}
	if v.InSync == len(v.Chain) {
		b.WriteString("]")
	}
	if v.Recovery {
		b.WriteString(" recovery")
	}
	return b.String()
}

// Validate returns an error that wraps ErrView if the view cannot be one.
func (v *View) Validate() error {
	err := func() error {
		switch {
		case v.Epoch == 0:
			return errors.New("epoch 0")
		case len(v.Chain) == 0:
			return errors.New("nobody in the chain")
		case len(v.Chain) > MaxChain:
			return fmt.Errorf("%d members, at most %d", len(v.Chain), MaxChain)
		case v.InSync < 1 || v.InSync > len(v.Chain):
			return fmt.Errorf("%d in sync of %d", v.InSync, len(v.Chain))
		}
		for i, m := range v.Chain {
			if m.Node == 0 {
				return errors.New("a member without a node")
			}
			if slices.ContainsFunc(v.Chain[:i], func(o Member) bool { return o.Node == m.Node }) {
				return fmt.Errorf("node %d twice", m.Node)
			}
		}
		return nil
	}()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrView, err)
	}
	return nil
}
