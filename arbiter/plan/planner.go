package plan

import "github.com/opencluster/oclocks/conf/shared"

// Planner plans for the leader. What it remembers is only of use to be faster: a new one, at a new leader, begins with
// nothing.
type Planner struct {
	cfg Config
}

// Config of a planner; a zero field has the default. Times are nanoseconds.
type Config struct {
	Linger int64 // how long copies that are alive and not needed are waited for, so that they keep their place (20 ms)
	Repeat int64 // until an order or a command is given again (100 ms)
	Settle int64 // how long a node must have had its lease before something is moved to it (3 s)
	Move   int64 // how long a hand-over may take, and after a failed one until the next try (10 s)
	Moves  int   // hand-overs at a time (16)
	Batch  int   // views in one command (4096)
	Absent int64 // after which a voter that is away is replaced by a learner (30 s)
}

// New makes a planner.
func New(cfg Config) *Planner { return &Planner{cfg: cfg} }

// Step says what is to be done now. It is cheap, and may be called as often as something happens.
func (p *Planner) Step(in Input) Output { return Output{} }

// Score says how good the node would be as the bucket's first secondary; the highest is best.
func Score(state *shared.State, bucket uint32, node uint64) int64 { return 0 }

// Keeps says whether the node should have a copy of the bucket.
func Keeps(state *shared.State, bucket uint32, node uint64) bool { return true }
