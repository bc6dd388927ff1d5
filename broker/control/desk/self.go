package desk

import (
	"errors"
	"fmt"
	"slices"

	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/conf/shared"
)

// lingerLook is how often a removed voter looks whether the group is without it, in nanoseconds.
const lingerLook int64 = 50e6

// mine says whether this process is the one that is registered as this node. Once it is not, it never is again.
func (d *Desk) mine(state *shared.State) bool {
	id := d.f.Identity
	if d.over != nil || id.Number == 0 || state.Change < id.Change {
		return d.over == nil
	}
	n := state.Node(id.Number)
	switch {
	case n == nil:
		d.over = flow.ErrRemoved
	case n.Registered != id.Change:
		d.over = fmt.Errorf("%w: it has registered at change %d, this one had at %d", flow.ErrDuplicate, n.Registered, id.Change)
	}
	return d.over == nil
}

// checkSelf notices that this node was removed, or that another process has been registered as this node.
func (d *Desk) checkSelf() {
	if !d.mine(d.f.State) && !d.failed && !d.lingers() {
		d.failed = true
		d.do(Over{d.over})
	}
}

// removed: its vote counts no more, so there is nothing to linger for.
func (d *Desk) removed() {
	if d.over == nil {
		d.over = flow.ErrRemoved
	}
	if !d.failed {
		d.failed = true
		d.do(Over{d.over})
	}
}

// lingers says that a removed node goes on without its copies: its vote may be needed until the group is without it, and if it
// leads nobody else can see to that. That its own log does not tell when its vote is gone is what enrol.Enrolment is for.
func (d *Desk) lingers() bool {
	s := &d.f.Status
	return errors.Is(d.over, flow.ErrRemoved) && slices.Contains(s.Voters, s.Raft)
}

// introduce greets everybody.
func (d *Desk) introduce() {
	d.checkSelf()
	for i := range d.f.State.Nodes {
		if n := &d.f.State.Nodes[i]; n.ID != d.cfg.Self {
			d.do(Greet{n.Number, false})
		}
	}
}
