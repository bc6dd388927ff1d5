package chaos

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"time"
)

// Kind is a kind of fault.
type Kind string

// The kinds of faults. A, B of a Step are nodes (1 and up) unless something else is said.
const (
	Kill        Kind = "kill"          // kill -9 of A, started again after For
	KillTwo     Kind = "kill-two"      // of A and B at once
	KillAll     Kind = "kill-all"      // of all nodes at once
	Restart     Kind = "restart"       // SIGTERM to A, started again when it has ended
	Rolling     Kind = "rolling"       // the same with all nodes, one after the other
	Stop        Kind = "stop"          // SIGSTOP to A for For
	StopAll     Kind = "stop-all"      // to all nodes at once
	Flicker     Kind = "flicker"       // SIGSTOP and SIGCONT to A again and again, For long: a slow node
	CutOneWay   Kind = "cut-one-way"   // nothing arrives from A at B
	CutTwoWays  Kind = "cut-two-ways"  // nor from B at A
	Isolate     Kind = "isolate"       // A from all nodes
	Split       Kind = "split"         // A and B from all other nodes
	Deaf        Kind = "deaf"          // nothing arrives at A from the other nodes
	Delay       Kind = "delay"         // between A and B: everything is N milliseconds late
	Corrupt     Kind = "corrupt"       // between A and B: bytes are flipped, which TLS makes a broken connection
	Reset       Kind = "reset"         // between A and B: connections are reset again and again
	LinkCut     Kind = "link-cut"      // nothing of their direct link arrives between A and B; their route works
	LinkOneWay  Kind = "link-one-way"  // nothing of their direct link arrives from A at B
	LinkDelay   Kind = "link-delay"    // as delay, of their direct link alone
	LinkCorrupt Kind = "link-corrupt"  // as corrupt
	LinkReset   Kind = "link-reset"    // as reset
	DiskFull    Kind = "disk-full"     // of A: started again when there is space
	WallClock   Kind = "wall-clock"    // of A: is N seconds away from the others' for For
	LoseDisk    Kind = "lose-disk"     // A is killed and comes back without its journal and control store
	AddNode     Kind = "add-node"      // a new node joins
	RemoveNode  Kind = "remove-node"   // A leaves for ever
	MoveBucket  Kind = "move-bucket"   // bucket N gets another primary by request of an operator
	Drain       Kind = "drain"         // A hands everything over, undrained after For
	Double      Kind = "double"        // the number of buckets
	Setting     Kind = "setting"       // Key=Value of the shared settings
	ClientKill  Kind = "client-kill"   // kill -9 of client process A, started again after For
	ClientStop  Kind = "client-stop"   // SIGSTOP to client process A for For
	ClientCut   Kind = "client-cut"    // nothing arrives between client process A and node B
	ClientAway  Kind = "client-away"   // nor any node
	ClientDelay Kind = "client-delay"  // between client process A and node B: everything is N milliseconds late
	ClientGarb  Kind = "client-garble" // between client process A and node B: rubbish, then a reset
)

// Step is one fault of a schedule.
type Step struct {
	At    time.Duration `json:"at"` // since the round began
	Kind  Kind          `json:"kind"`
	A     int           `json:"a,omitempty"`
	B     int           `json:"b,omitempty"`
	For   time.Duration `json:"for,omitempty"`
	N     int           `json:"n,omitempty"`
	Key   string        `json:"key,omitempty"`
	Value string        `json:"value,omitempty"`
}

// String is one line for people.
func (s Step) String() string {
	text := fmt.Sprintf("%7.3fs %s", s.At.Seconds(), s.Kind)
	for _, part := range []struct {
		show bool
		text string
	}{
		{s.A != 0, fmt.Sprint(" ", s.A)}, {s.B != 0, fmt.Sprint(" ", s.B)}, {s.N != 0, fmt.Sprint(" n=", s.N)},
		{s.Key != "", " " + s.Key + "=" + s.Value}, {s.For != 0, " for " + s.For.String()},
	} {
		if part.show {
			text += part.text
		}
	}
	return text
}

// Round is faults, after which everything is healed and the cluster must come together before the next round begins.
type Round struct {
	Length time.Duration `json:"length"`
	Steps  []Step        `json:"steps"` // in the order of time
}

// Schedule is everything that is done to a cluster in a run.
type Schedule struct {
	Seed     uint64            `json:"seed"`
	Nodes    int               `json:"nodes"`
	Clients  int               `json:"clients"`
	Buckets  int               `json:"buckets"`
	Acks     string            `json:"acks"`
	Settings map[string]string `json:"settings"` // changed before the first round
	Rounds   []Round           `json:"rounds"`
}

// roundLength is how long faults go on before everything is healed.
const roundLength = 40 * time.Second

// weights say how often each kind of fault is chosen. Those that hit one node out of several come often.
var weights = []struct {
	kind   Kind
	weight int
}{
	{Kill, 8}, {KillTwo, 3}, {KillAll, 1}, {Restart, 4}, {Rolling, 1}, {Stop, 8}, {StopAll, 1}, {Flicker, 3},
	{CutOneWay, 6}, {CutTwoWays, 5}, {Isolate, 5}, {Split, 3}, {Deaf, 3},
	{Delay, 4}, {Corrupt, 4}, {Reset, 4}, {LinkCut, 3}, {LinkOneWay, 3}, {LinkDelay, 3}, {LinkCorrupt, 2}, {LinkReset, 3}, {DiskFull, 3}, {WallClock, 4}, {LoseDisk, 2},
	{AddNode, 2}, {RemoveNode, 2}, {MoveBucket, 4}, {Drain, 3}, {Double, 1}, {Setting, 4},
	{ClientKill, 6}, {ClientStop, 6}, {ClientCut, 4}, {ClientAway, 4}, {ClientDelay, 4}, {ClientGarb, 4},
}

// Kinds are all kinds of faults, in their order.
func Kinds() (list []Kind) {
	for _, w := range weights {
		list = append(list, w.kind)
	}
	return list
}

// newSchedule writes the schedule of a seed: the same seed and length give the same schedule. Length is about how long the run is to
// take on the whole; a quarter of it is for coming together.
func newSchedule(seed uint64, length time.Duration) *Schedule {
	rng := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // a test's choice
	s := &Schedule{Seed: seed, Nodes: 3 + rng.IntN(3), Clients: 5, Buckets: 4 << rng.IntN(3), Settings: map[string]string{}}
	s.Acks = []string{"first", "first", "majority", "all"}[rng.IntN(4)]
	s.Settings["give_up"] = []string{"2s", "10s", "1m"}[rng.IntN(3)]
	mix := chooseMix(rng)
	for left := length * 3 / 4; left > 0; left -= roundLength {
		s.Rounds = append(s.Rounds, newRound(rng, mix, s, min(left, roundLength)))
	}
	return s
}

// chooseMix makes a run its own mix: of each kind none, as many as usual, or many more.
func chooseMix(rng *rand.Rand) []Kind {
	var mix []Kind
	for _, w := range weights {
		for range w.weight * []int{0, 1, 1, 1, 4}[rng.IntN(5)] {
			mix = append(mix, w.kind)
		}
	}
	if len(mix) == 0 {
		return []Kind{Kill}
	}
	return mix
}

func newRound(rng *rand.Rand, mix []Kind, s *Schedule, length time.Duration) Round {
	round := Round{Length: length}
	calm := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}[rng.IntN(3)] // between two faults, on average
	for at := time.Duration(0); ; {
		at += time.Duration(rng.ExpFloat64() * float64(calm))
		if at >= length {
			slices.SortStableFunc(round.Steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
			return round
		}
		step := newStep(rng, mix[rng.IntN(len(mix))], s)
		step.At = at.Truncate(time.Millisecond)
		if step.Kind == LoseDisk {
			step.At = 0 // while nothing else is broken
		}
		step.For = min(step.For, length).Truncate(time.Millisecond)
		round.Steps = append(round.Steps, step)
	}
}

func newStep(rng *rand.Rand, kind Kind, s *Schedule) Step {
	step := Step{Kind: kind, A: 1 + rng.IntN(s.Nodes), For: 300*time.Millisecond + time.Duration(rng.ExpFloat64()*float64(4*time.Second))}
	step.For = min(step.For, 20*time.Second)
	other := 1 + (step.A+rng.IntN(s.Nodes-1))%s.Nodes
	switch kind {
	case KillTwo, Split, CutOneWay, CutTwoWays, LinkCut, LinkOneWay:
		step.B = other
	case Corrupt, Reset, Delay, LinkCorrupt, LinkReset, LinkDelay:
		step.B, step.For = other, step.For+3*time.Second // a connection must come about again before anything can be done to it
		if kind == Delay || kind == LinkDelay {
			step.N = []int{5, 50, 200, 900}[rng.IntN(4)]
		}
	case KillAll, StopAll:
		step.A, step.For = 0, min(step.For, 3*time.Second)
	case AddNode, Double:
		step.A = 0
	case Rolling:
		step.A, step.For = 0, 0
	case MoveBucket:
		step.N, step.For = 1+rng.IntN(s.Buckets), 0
	case WallClock:
		step.N = []int{-86400 * 400, -3600, -5, 5, 3600, 86400 * 400}[rng.IntN(6)]
	case Setting:
		all := []struct{ key, value string }{{"min_quorum", "2"}, {"min_quorum", "1"},
			{"copies", "2"}, {"copies", "0"}, {"balance", "false"}, {"balance", "true"}, {"sync", "always"}, {"sync", "background"}}
		one := all[rng.IntN(len(all))]
		step.A, step.For, step.Key, step.Value = 0, 0, one.key, one.value
	case ClientKill, ClientStop, ClientCut, ClientAway, ClientDelay, ClientGarb:
		step.A = 1 + rng.IntN(s.Clients)
		if kind == ClientCut || kind == ClientDelay || kind == ClientGarb {
			step.B = 1 + rng.IntN(s.Nodes)
		}
		if kind == ClientDelay {
			step.N = []int{20, 200, 1200}[rng.IntN(3)]
		}
	case Restart, RemoveNode:
		step.For = 0
	}
	return step
}

// readSchedule reads one that was written.
func readSchedule(path string) (*Schedule, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read a schedule: %w", err)
	}
	s := &Schedule{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("read the schedule %s: %w", path, err)
	}
	if s.Nodes < 3 || s.Nodes > 9 || s.Clients < 1 || s.Clients > 20 || len(s.Rounds) == 0 {
		return nil, fmt.Errorf("read the schedule %s: %d nodes (3 to 9), %d clients (1 to 20), %d rounds (at least 1)", path, s.Nodes, s.Clients, len(s.Rounds))
	}
	return s, nil
}

func (s *Schedule) write(path string) error {
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return fmt.Errorf("write the schedule: %w", err)
	}
	if err := os.WriteFile(path, append(text, '\n'), 0o644); err != nil { //nolint:gosec // for people to read
		return fmt.Errorf("write the schedule: %w", err)
	}
	return nil
}
