package chain

import (
	"fmt"

	"github.com/opencluster/oclocks/internal/mutant"
)

// Replica is one copy of a bucket. It is not safe for concurrent use.
type Replica struct {
	cfg   Config
	lim   Limits
	state State
	now   int64

	lease   Lease
	applied uint64 // the newest change of the control plane that was applied here

	view  View
	place int    // of Self in view.Chain, -1 if it is not in it
	heard uint64 // the newest epoch that anybody told of

	log       log
	confirmed uint64 // known to be confirmed
	delivered uint64 // the table's state; a primary's table is ahead of confirmed

	lead     *lead    // not nil: this copy is the primary of view and took over properly
	promoted bool     // Output.Promoted was given, be it by an earlier life, and Output.Demoted not since
	up       upstream // where changes come from
	down     *link    // where they go to, nil if nowhere

	proposal   *View // asked of the control plane, and not known to be refused or overtaken
	proposedAt int64
	replan     bool     // something has happened that another view could follow from
	plannedAt  int64    // when it was last thought about without a cause
	scores     []score  // of other nodes, in the order of their first mention
	away       []uint64 // nodes that the control plane takes for dead

	shown   bool   // it may have confirmed something under this view, so the primary may be about to rely on it
	stopped string // not empty: this copy must not be used any more, and why
	leaving bool   // wants to be dropped from the chain
	leftAt  int64  // when it said so last
	wanted  bool   // wants to be in the chain
	join    joining

	out      Output
	given    given
	blocks   blocks
	unstored int   // changes of the log that are not in an Output yet
	dirty    bool  // there was an input since the last Output
	readyAt  int64 // time of the last Output
}

// Lease is the node's permission to act.
type Lease struct {
	Until int64  // nanoseconds, as in Ready; the node's own sending and 3/4 of the lease
	Under uint64 // the change ID that came with it: nothing is done under it before this change is applied
}

// New makes a copy of what the journal had. It does nothing before a view is installed. Errors wrap ErrConfig and
// ErrDamaged.
func New(cfg Config, start Start) (*Replica, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	r := &Replica{cfg: cfg, lim: cfg.Limits.withDefaults(), state: start.State, place: -1}
	if r.state.Self == (Member{}) {
		r.state.Self = cfg.Self
	}
	if r.state.Self.Node != cfg.Self.Node {
		return nil, fmt.Errorf("%w: node %d has the state of node %d", ErrConfig, cfg.Self.Node, r.state.Self.Node)
	}
	base := start.Base
	if base == (Point{}) {
		base = Origin(cfg.Bucket)
	}
	r.log.reset(base)
	for i := range start.Changes {
		c := start.Changes[i]
		if last := r.log.last(); c.Seq != last.Seq+1 || c.Prev != last.Hash || c.Epoch < last.Epoch || !c.intact() {
			return nil, fmt.Errorf("%w: change %d does not follow change %v", ErrDamaged, c.Seq, last)
		}
		r.log.append(c)
	}
	if start.Confirmed < base.Seq || start.Confirmed > r.log.last().Seq ||
		start.Delivered < base.Seq || start.Delivered > start.Confirmed {
		return nil, fmt.Errorf("%w: changes %d to %d, confirmed to %d, delivered to %d", ErrDamaged, base.Seq+1,
			r.log.last().Seq, start.Confirmed, start.Delivered)
	}
	r.confirmed, r.delivered = start.Confirmed, start.Delivered
	return r, nil
}

// Self is this copy. It changes when the copy is thrown away and begun anew.
func (r *Replica) Self() Member { return r.state.Self }

// View is the newest view that was installed; the zero View before the first.
func (r *Replica) View() View { return r.view.Clone() }

// Epoch is that of the newest view; 0 before the first.
func (r *Replica) Epoch() uint64 { return r.view.Epoch }

// Primary is the primary of the newest view.
func (r *Replica) Primary() Member { return r.view.Primary() }

// Grant tells of a new lease of the node.
func (r *Replica) Grant(l Lease) {
	r.dirty = r.dirty || !r.leased()
	r.lease = l
}

// SetRecovery tells how long recoveries take that begin from now on, in nanoseconds. Before a view is installed it must be told
// what is so as of the change that has the view, or a later one: leases that were promised before that view may be as long.
func (r *Replica) SetRecovery(length int64) { r.cfg.Recovery = length }

// Applied tells that everything of the control plane up to this change ID is applied here: every view that it contains has
// been installed.
func (r *Replica) Applied(change uint64) {
	r.dirty = r.dirty || !r.leased()
	r.applied = max(r.applied, change)
}

// leased says whether the node may act at all.
func (r *Replica) leased() bool {
	return (r.now < r.lease.Until || mutant.On(mutant.LeaseUnchecked)) && r.applied >= r.lease.Under
}

// open says whether this copy may take part under its view.
func (r *Replica) open() bool {
	return r.view.Epoch > r.state.Sealed && r.heard <= r.view.Epoch && r.stopped == ""
}

// acting says whether this copy may answer as the primary.
func (r *Replica) acting() bool { return r.lead != nil && r.open() && r.leased() }

// Propose adds a change to the history and gives its number. The bytes are copied. It may be carried out when
// Output.Confirmed has reached that number. Errors: those of Proposable, and ErrTooLarge; nothing has been changed then. A
// table that has already made the change when it proposes it asks Proposable first and keeps to Limits.Change by itself.
//
// The first call after Output.Promoted is what makes everything before it be confirmed, so it must not wait for a request;
// a table that has nothing to say proposes no bytes.
func (r *Replica) Propose(data []byte) (uint64, error) {
	if err := r.Proposable(); err != nil {
		return 0, err
	}
	if len(data) > r.lim.Change {
		return 0, fmt.Errorf("%w: a change of %d bytes, the limit is %d", ErrTooLarge, len(data), r.lim.Change)
	}
	last := r.log.last()
	c := Change{Epoch: r.view.Epoch, Seq: last.Seq + 1, Prev: last.Hash, Data: append(r.blocks.room(len(data)), data...)}
	c.Hash = chainHash(c.Prev, c.Epoch, c.Seq, c.Data)
	r.add(c)
	r.delivered = c.Seq
	r.lead.pending += len(c.Data)
	r.dirty, r.lead.owed = true, true
	return c.Seq, nil
}

// add puts a change at the end of the history and asks for it to be stored.
func (r *Replica) add(c Change) {
	r.log.append(c)
	r.unstored++
}

// truncate throws away the history after seq.
func (r *Replica) truncate(seq uint64) {
	gone := int(r.log.last().Seq - seq)
	r.log.truncate(seq)
	if r.unstored >= gone {
		r.unstored -= gone
		return
	}
	r.unstored = 0
	r.out.Truncate, r.out.TruncateTo = true, seq
}

// Seal makes this copy never act again in a view of this epoch or an older one, and has Output.Sealed tell so.
func (r *Replica) Seal(epoch uint64) {
	r.dirty = true
	r.seal(epoch)
	r.report()
}

func (r *Replica) seal(epoch uint64) {
	if epoch > r.state.Sealed {
		r.state.Sealed = epoch
		r.store()
	}
}

// report says what this copy has, once it can be relied on that it will not get more.
func (r *Replica) report() {
	r.out.Sealed = &Report{
		Member: r.state.Self, Epoch: r.state.Sealed, Last: r.log.last(), Confirmed: r.confirmed, Failed: r.stopped != "",
	}
}

// store has the state written to the journal.
func (r *Replica) store() {
	s := r.state
	r.out.State = &s
}

func (r *Replica) alert(about Member, seq uint64, format string, args ...any) {
	r.out.Alerts = append(r.out.Alerts, Alert{Member: about, Seq: seq, Text: fmt.Sprintf(format, args...)})
}

// send puts a message into the output.
func (r *Replica) send(to Member, m Message) {
	m.Bucket, m.Epoch, m.From, m.To = r.cfg.Bucket, r.view.Epoch, r.state.Self, to
	r.out.Messages = append(r.out.Messages, m)
}
