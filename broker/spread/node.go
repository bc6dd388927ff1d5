package spread

import (
	"slices"
	"time"

	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

// Node is what all buckets of a node are told of.
type Node struct {
	state *shared.State
	views []shared.BucketView // installed with the state that is applied next
}

// NewNode is for buckets that were opened with this state.
func NewNode(state *shared.State) *Node { return &Node{state: state} }

// Opened is the first thing that the shards are told.
func (n *Node) Opened() []Task { return []Task{{Kind: Scores, State: n.state}} }

// Install keeps views for the Applied that has them.
func (n *Node) Install(views []shared.BucketView) { n.views = append(n.views, views...) }

// Applied takes over a state. longest is the longest lease that is promised with it.
func (n *Node) Applied(change uint64, state *shared.State, longest time.Duration) []Task {
	old := n.state
	tasks := []Task{{
		Kind: Adopt, Change: change, State: state, Views: n.views, MaxLease: longest, Grown: len(old.Views) < len(state.Views),
	}}
	n.state, n.views = state, nil
	for i := range old.Nodes {
		if number := old.Nodes[i].Number; removed(state, number) {
			tasks = append(tasks, Task{Kind: Reach, Node: number, Away: true})
		}
	}
	switch {
	case !slices.EqualFunc(old.Nodes, state.Nodes, sameNode), old.Settings.Copies != state.Settings.Copies:
		tasks = append(tasks, Task{Kind: Scores, State: state})
	case state.Settings.Copies != 0:
		for number := range min(len(old.Views), len(state.Views)) {
			if old.Views[number].Primary() != state.Views[number].Primary() {
				tasks = append(tasks, Task{Kind: Score, Bucket: uint32(number), State: state})
			}
		}
	}
	return tasks
}

// Grant tells the node's lease.
func (n *Node) Grant(lease chain.Lease) []Task { return []Task{{Kind: Lease, Lease: lease}} }

// Away tells whether messages reach a node.
func (n *Node) Away(node uint64, away bool) []Task {
	return []Task{{Kind: Reach, Node: node, Away: away}}
}

// Seal asks for copies to be sealed.
func (n *Node) Seal(orders []plan.SealOrder) (tasks []Task) {
	for _, o := range orders {
		tasks = append(tasks, Task{Kind: Seal, Bucket: o.Bucket, Epoch: o.Epoch})
	}
	return tasks
}

// HandOver asks primaries to hand over.
func (n *Node) HandOver(orders []plan.HandOverOrder) (tasks []Task) {
	for _, o := range orders {
		tasks = append(tasks, Task{Kind: HandOver, Bucket: o.Bucket, Epoch: o.Epoch, To: o.To})
	}
	return tasks
}

// Refused tells that a view will never be committed.
func (n *Node) Refused(bucket uint32, view chain.View) []Task {
	return []Task{{Kind: Refuse, Bucket: bucket, View: view}}
}

// removed says whether there was a node with this number and is none any more. Numbers are given once, in their order.
func removed(state *shared.State, number uint64) bool {
	return number <= state.Last && state.Node(number) == nil
}

// sameNode compares what matters for who should have copies, and which.
func sameNode(a, b shared.Node) bool {
	return a.Number == b.Number && a.Location == b.Location && a.Drain == b.Drain && a.Priority == b.Priority && a.Life == b.Life
}
