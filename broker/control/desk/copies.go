package desk

import (
	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

// Copies are this node's copies of the buckets. All calls come from one goroutine, in order, after control.Serve. They
// must not block long: the node's lease is told by the same goroutine.
type Copies interface {
	// Install gives views in the order in which they were committed, and before the Applied that has them. At first it gives
	// every view that there is. After a snapshot, or if the copies are slow, views between may be left out.
	Install(views []shared.BucketView)
	// Applied says that everything up to this change is applied here. The state is that after it, and is never written to.
	Applied(change uint64, state *shared.State)
	// Grant gives the node's lease: chain.Replica.Grant for every copy. live is how many nodes hold one.
	Grant(lease chain.Lease, live int)
	// Seal asks copies to be sealed; control.Sealed is the answer. It may come again.
	Seal(orders []plan.SealOrder)
	// HandOver asks primaries to hand over. It may come again.
	HandOver(orders []plan.HandOverOrder)
	// Away tells whether messages reach a node, as far as is known.
	Away(node uint64, away bool)
	// Refused says that this view, asked for with control.Propose, will never be committed and that no copy of the question is
	// on its way any more. Tell the copy only if it is what it asked for last: the same question asked once more may have
	// crossed an earlier refusal.
	Refused(bucket uint32, view chain.View)
}

// Tell tells the copies an effect, if it is for them.
func Tell(copies Copies, e Effect) bool {
	switch e := e.(type) {
	case Away:
		copies.Away(e.Node, e.Away)
	case Install:
		copies.Install(e.Views)
	case Applied:
		copies.Applied(e.Change, e.State)
	case Grant:
		copies.Grant(e.Lease.Lease, e.Live)
	case Refused:
		copies.Refused(e.Bucket, e.View)
	case Seal:
		copies.Seal(e.Orders)
	case HandOver:
		copies.HandOver(e.Orders)
	default:
		return false
	}
	return true
}
