package replicated

import (
	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/bucket/chain"
)

// Output collects what any number of buckets want done. Carry it out from the top to the bottom. Reset it before the next
// round; its slices are used again.
type Output struct {
	Records  []Record        // to the journal, before anything below is begun
	Messages []chain.Message // to the nodes of their To; each may be lost
	Later    []chain.Message // likewise, but no answer waits for them: better with others than soon

	Released []Effect   // to be seen from outside
	Marks    []Released // answers to Wait
	Turns    []Turn     // who is to be asked about a bucket has changed

	Proposals []Proposal // views that the control plane is asked to commit
	Reports   []Report   // answers to Seal: for the control plane
	Behind    []Behind   // views that exist and were not installed here
	Alerts    []Alert    // for all nodes
	Forks     []Fork     // buckets that begin here
	Touched   []Touched  // what a change was about

	arena []byte // payloads of Records
}

// How much memory an output keeps for the payloads of the next round, in bytes.
const (
	arenaLeast = 64 << 10
	arenaMost  = 1 << 20
)

// Reset empties the output.
func (o *Output) Reset() {
	clear(o.Messages)
	clear(o.Later)
	clear(o.Released)
	clear(o.Marks)
	clear(o.Records)
	o.Records, o.Messages, o.Released, o.Marks = o.Records[:0], o.Messages[:0], o.Released[:0], o.Marks[:0]
	o.Later = o.Later[:0]
	o.Turns, o.Proposals, o.Reports = o.Turns[:0], o.Proposals[:0], o.Reports[:0]
	o.Behind, o.Alerts, o.Touched = o.Behind[:0], o.Alerts[:0], o.Touched[:0]
	clear(o.Forks)
	o.Forks = o.Forks[:0]
	o.arena = o.arena[:0]
}

// begin is an empty slice at the end of the arena, for the next payload.
func (o *Output) begin() []byte { return o.arena[len(o.arena):] }

// end takes a payload that was begun with begin. If it did not fit it has an array of its own; and what comes next has a larger arena,
// unless it is an image of a large table that did not fit.
func (o *Output) end(payload []byte) []byte {
	switch {
	case len(payload) <= cap(o.arena)-len(o.arena):
		o.arena = o.arena[:len(o.arena)+len(payload)]
	case len(payload) <= max(cap(o.arena), arenaLeast):
		o.arena = make([]byte, 0, min(max(2*cap(o.arena), arenaLeast), arenaMost))
	}
	return payload[:len(payload):len(payload)]
}

// Effect is an effect of a bucket's table.
type Effect struct {
	Bucket uint32
	bucket.Effect
}

// Released says that everything that a mark waited for is confirmed, or, if Lost, that this copy will never know.
type Released struct {
	Mark any
	Lost bool
}

// Turn says that this node is asked about a bucket from now on, or not any more.
type Turn struct {
	Bucket  uint32
	Primary bool
}

// Proposal is a view that a primary asks for.
type Proposal struct {
	Bucket uint32
	View   chain.View
}

// Report is that of a sealed copy.
type Report struct {
	Bucket uint32
	chain.Report
}

// Behind says that a view of this epoch exists.
type Behind struct {
	Bucket uint32
	Epoch  uint64
}

// Alert is something that people should look into.
type Alert struct {
	Bucket uint32
	chain.Alert
}

// Touched says that a change of a bucket was about a zone; "" is any number of zones.
type Touched struct {
	Bucket uint32
	Zone   string
}
