package spread

import (
	"fmt"
	"time"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

// Kind is what a shard is told.
type Kind uint8

// What there is. Seal, HandOver, Refuse and Score are for one bucket, the others for all of the shard.
const (
	Adopt    Kind = iota // a state
	Lease                // the node's
	Reach                // whether messages reach a node
	Scores               // whom to prefer, and whether copies are kept
	Score                // the same for one bucket
	Seal                 // be sealed
	HandOver             // hand over
	Refuse               // a view that was asked for will never be committed
)

// Task is something that shards are told. It is shared by them: do not change it.
type Task struct {
	Kind   Kind
	Bucket uint32 // if it is for one

	Change   uint64        // Adopt: everything up to it is applied
	State    *shared.State // Adopt, Scores, Score
	Views    []shared.BucketView
	MaxLease time.Duration // Adopt: the longest lease that is promised
	Grown    bool          // Adopt: there are more buckets than before: the primaries split theirs

	Lease chain.Lease  // Lease
	Node  uint64       // Reach
	Away  bool         // Reach
	Epoch uint64       // Seal, HandOver
	To    chain.Member // HandOver
	View  chain.View   // Refuse
}

// Only says which bucket it is for, if it is for one.
func (t *Task) Only() (bucket uint32, one bool) { return t.Bucket, t.Kind >= Score }

func (k Kind) String() string {
	if names := [...]string{"adopt", "lease", "reach", "scores", "score", "seal", "hand over", "refuse"}; int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("kind %d", k)
}
