package plan

import (
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

// Input is what the leader knows at one moment. Times are nanoseconds of the boot-time clock of this machine.
//
// What is in it has to be read in this order: State first, then Nodes (of what the arbiter knows, after every grant of a
// lease before it), then Now.
type Input struct {
	Now      int64
	Leading  bool          // this node leads the control plane; if not, nothing else is looked at and all is forgotten
	Term     uint64        // its term of Raft, in which alone what the Output asks for may take effect
	TakeFrom int64         // before this time leases may be out that this leader does not know of
	State    *shared.State // the newest
	Nodes    []Evidence    // of every node that ever asked for a lease in this term, removed ones too; in any order
	Reports  []BucketReport
	Group    Group
}

// Evidence is what the leader knows of one node.
type Evidence struct {
	Number     uint64
	LeaseUntil int64 // when the last lease that it was granted ends at the latest; 0 if none was in this term
	Connected  bool  // messages reach it, as far as is known
	Leaving    bool  // it has asked to be primary of nothing, because it is about to stop

	// Barred: since Output.Bar named it, no lease has been granted to it and none will be, until a later Bar does not name it.
	// LeaseUntil must have been read after that became so.
	Barred bool
}

// BucketReport is what a sealed copy told. Each is given once; the planner keeps what it needs.
type BucketReport struct {
	Bucket uint32
	Report chain.Report
}

// Group is the Raft group, in raft IDs.
type Group struct {
	Leader   uint64 // this node
	Voters   []uint64
	Learners []uint64
	Last     uint64  // index of the last entry of the leader's log
	Match    []Match // how far each other member's log is known to be the leader's
}

// Match is the progress of one member of the group.
type Match struct {
	Raft  uint64
	Index uint64
	Heard bool // something came from it lately, and it lags little behind (core.Peer.Active)
}

// Output is what is to be done. All lists are sorted.
type Output struct {
	// Bar names the nodes that get no lease until another Output does not name them. It replaces the one before.
	Bar []uint64
	// Views is to be proposed as one command (shared.ViewChange) with this Term, 0 if there are none. It is given again from
	// time to time until State shows it.
	Views    []shared.BucketView
	Term     uint64
	Seal     []SealOrder
	HandOver []HandOverOrder
	Members  []MemberStep
	// Outlived is to be proposed as shared.Outlived of this change; 0 if there is nothing to tell. It is given again like Views.
	Outlived uint64
	Next     int64 // when Step is due if nothing happens before: a report, another State, other evidence
}

// SealOrder asks a node to seal its copy of a bucket for the epoch and to report. With Epoch 0 nothing is sealed, and the
// report tells whether it was before. A node that has no copy yet, because the bucket is one that a doubling has made and its
// parent's copy has not been split here, does not answer.
type SealOrder struct {
	Node   uint64
	Bucket uint32
	Epoch  uint64
}

// HandOverOrder asks the primary of a bucket to hand over to another member of the chain. It counts only for a copy whose
// view has that epoch. It is given again until State shows what came of it.
type HandOverOrder struct {
	Node   uint64
	Bucket uint32
	Epoch  uint64
	To     chain.Member
}

// Change says what a MemberStep does.
type Change uint8

// The changes of the Raft group.
const (
	AddLearner Change = iota + 1 // make it a member that does not vote
	Promote                      // make the learner a voter
	Demote                       // make the voter a learner
	Remove                       // make it no member
	Transfer                     // give the leadership to this voter
)

var changeNames = [...]string{AddLearner: "add", Promote: "promote", Demote: "demote", Remove: "remove", Transfer: "transfer"}

func (c Change) String() string { return changeNames[c] }

// MemberStep is one change of the Raft group.
type MemberStep struct {
	Change Change
	Raft   uint64
}

// Ended gives, for each of the views that the planner wants, the nodes of the in-sync set before it that get no lease and whose
// last one is over. They have to stay so until the view is committed; who proposes it looks once more. A bucket that State does
// not have is left out.
func (in *Input) Ended(views []shared.BucketView) map[uint32][]uint64 {
	over := make(map[uint64]bool, len(in.Nodes))
	for _, e := range in.Nodes {
		over[e.Number] = e.Barred && e.LeaseUntil <= in.Now
	}
	ended := make(map[uint32][]uint64, len(views))
	for _, b := range views {
		if b.Bucket >= in.State.Buckets() {
			continue
		}
		var nodes []uint64
		for _, m := range in.State.Views[b.Bucket].Members() {
			if over[m.Node] {
				nodes = append(nodes, m.Node)
			}
		}
		ended[b.Bucket] = nodes
	}
	return ended
}
