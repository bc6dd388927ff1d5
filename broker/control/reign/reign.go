package reign

import (
	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/conf/shared"
)

// Times are boot time in nanoseconds, and lengths are in nanoseconds.
const (
	leavingFor  int64 = 2e9   // a node that wants to leave says so more often
	restless    int64 = 50e6  // the planner is asked at least so often while not every node holds a lease
	restful     int64 = 500e6 // and else
	retry       int64 = 20e6  // until what the arbiter was too busy for is tried again
	stepWait    int64 = 5e9   // how long one change of the group may take until the planner is asked again
	requestWait int64 = 2e9   // how long a node waits for the answer to its registration
	maxQueued         = 32    // registrations that wait; who is beyond asks again
	maxFirsts         = 4096  // processes whose first question is kept
	maxBuckets        = 1 << 16
)

// Config of a reign.
type Config struct {
	Self     string // identifier of this node
	Start    uint64 // of this process
	Term     uint64
	TakeFrom int64         // core.Leadership.TakeFrom
	Plan     plan.Config   // times of the planner
	Found    *shared.Found // found the cluster with that if this was not done; nil: it must be there
}

// Facts are what the leader knows at one moment, in the order in which it must be read.
type Facts struct {
	State   *shared.State // the newest that is applied here
	Leases  []core.NodeLease
	Status  core.Status
	Away    map[uint64]bool // by number: nodes that messages do not reach, as the copies are told
	Gone    map[uint64]bool // by number: nodes that said that they go
	Number  uint64          // of this node; 0: it is not registered yet
	Leaving bool            // this node is about to stop
	Now     int64
}

// Input is something that has happened: [Changed], [Report], [Leave], [Register] or [Done].
type Input interface{ input() }

// Changed says that the facts may be others.
type Changed struct{}

// Report is what a node tells of its sealed copies.
type Report struct {
	Node    uint64
	Reports []plan.BucketReport // those of other nodes are ignored
}

// Leave says that a node wants to be primary of nothing.
type Leave struct {
	Asker  string // given back with the answer
	Number uint64
}

// Register is a process that wants to be registered.
type Register struct {
	Asker   string // given back with the answer
	Request shared.Register
}

// Done says what became of something that an Output wanted.
type Done struct {
	What   What
	OK     bool          // it was committed
	Result shared.Result // if it was
	Busy   bool          // the arbiter had no room for it
}

func (Changed) input()  {}
func (Report) input()   {}
func (Leave) input()    {}
func (Register) input() {}
func (Done) input()     {}

// What an Output wants. There is one of each at a time; Announce and Views count as the same.
type What uint8

// What there is.
const (
	Announce   What = iota // the term
	Views                  // views that the planner wants
	Foundation             // of the cluster
	Admission              // one registration
	Group                  // one change of the group
	Outlived               // that longer leases than max_lease are over
	Raising                // of the level by which commands are applied
)

// Output is what is to be done, in this order.
type Output struct {
	// Bar names the nodes that get no lease from now on, if Barred; it replaces the one before.
	Bar       map[uint64]bool
	Barred    bool
	Listen    bool // from now on this node answers as the leader
	Proposals []Proposal
	Orders    []Order
	Group     *plan.MemberStep // change the group, within GroupWait; then say Done
	Admitted  []Admitted
	Left      []Left
	Alerts    []string // about no bucket
	Problem   string   // for the log
	Fail      error    // the node cannot go on
	Next      int64    // when the next Step is due if nothing happens before
}

// GroupWait is how long a change of the group may take, in nanoseconds; after that its outcome counts as a refusal.
const GroupWait = stepWait

// Proposal is a command to be proposed, in this term only.
type Proposal struct {
	What    What
	Command []byte
	Only    core.Condition
	Limit   int64 // after so long its outcome counts as not known; 0: wait as long as the reign lasts
}

// Order is what a node is to do: to another one over the network, and it may get lost; to this one without.
type Order struct {
	Node     uint64
	Seal     []plan.SealOrder
	HandOver []plan.HandOverOrder
}

// Answer to a process that wants to be registered.
type Answer struct {
	Number uint64 `json:"number,omitempty"`
	Life   uint64 `json:"life,omitempty"`
	Change uint64 `json:"change,omitempty"` // the registration is in this change

	WaitMS    int64  `json:"wait_ms,omitempty"`   // ask again after this time
	Duplicate bool   `json:"duplicate,omitempty"` // another node lives under the identifier
	Kind      string `json:"kind,omitempty"`      // refused: as in shared.Result
	Problem   string `json:"problem,omitempty"`
	Votes     bool   `json:"votes,omitempty"` // removed, and the group still counts on its vote
}

// Admitted is the answer to a Register.
type Admitted struct {
	Asker  string
	Answer Answer
}

// Left is the answer to a Leave: how many other nodes could take over.
type Left struct {
	Asker  string
	Others int
}

// Reign is one term in which this node leads.
type Reign struct {
	cfg     Config
	planner *plan.Planner

	listening bool
	founding  bool
	lost      bool  // the cluster cannot be founded here
	due       int64 // when the planner is asked again

	barred  map[uint64]bool
	reports []plan.BucketReport
	leaving map[uint64]int64 // nodes that want to leave, and when they said so last

	views     *flow.Asks          // that the planner wants
	ended     map[uint32][]uint64 // by bucket: nodes whose lease must have ended for the view
	announced bool
	batch     []flow.Ask // on its way
	held      int64      // no command before this time
	stepping  bool       // a change of the group is on its way
	outliving bool       // the command that tells of the leases that are over is on its way
	raising   bool       // the command that raises the level is on its way

	queue    []Register
	admits   *Register         // its command is on its way
	firsts   map[uint64]int64  // by process: when it asked first
	admitted map[uint64]Answer // by process
}

// New begins a reign: the first Step is due at once.
func New(cfg Config) *Reign {
	return &Reign{
		cfg: cfg, planner: plan.New(cfg.Plan), barred: map[uint64]bool{}, leaving: map[uint64]int64{},
		views: flow.NewAsks(maxBuckets), ended: map[uint32][]uint64{}, firsts: map[uint64]int64{}, admitted: map[uint64]Answer{},
	}
}

// Term is that of the reign.
func (r *Reign) Term() uint64 { return r.cfg.Term }

// Listening says whether this node answers as the leader.
func (r *Reign) Listening() bool { return r.listening }

// Step takes what has happened. It keeps parts of the inputs, and nothing of the facts but the state.
func (r *Reign) Step(f Facts, inputs []Input) (out Output) {
	round := f.Now >= r.due
	for _, in := range inputs {
		switch in := in.(type) {
		case Changed:
			round = true
		case Report:
			r.report(in)
			round = true
		case Leave:
			out.Left = append(out.Left, r.leave(&f, in))
			round = true
		case Register:
			if len(r.queue) < maxQueued {
				r.queue = append(r.queue, in)
			}
		case Done:
			round = r.done(&f, in, &out) || round
		}
	}
	r.found(&f, &out)
	r.announce(&f, &out)
	if r.listening && round {
		r.round(&f, &out)
	}
	r.propose(&f, &out)
	r.register(&f, &out)
	out.Next = r.next(f.Now)
	return out
}

// next is when a Step is due if nothing happens.
func (r *Reign) next(now int64) int64 {
	next := r.due
	if !r.listening {
		next = now + restless
	}
	if r.held > now {
		next = min(next, r.held)
	}
	return next
}

// End tells those who wait for a registration to ask again: the others know who leads. inputs are what no Step has taken.
func (r *Reign) End(inputs []Input) (answers []Admitted) {
	if r.admits != nil {
		r.queue = append([]Register{*r.admits}, r.queue...)
	}
	for _, in := range inputs {
		if q, ok := in.(Register); ok {
			r.queue = append(r.queue, q)
		}
	}
	for _, q := range r.queue {
		answers = append(answers, Admitted{q.Asker, Answer{WaitMS: soon}})
	}
	r.queue, r.admits = nil, nil
	return answers
}

// done takes an outcome, and says whether the planner could care.
func (r *Reign) done(f *Facts, in Done, out *Output) bool {
	switch in.What {
	case Announce, Views:
		r.proposed(f, in)
	case Foundation:
		r.founded(f, in, out)
	case Admission:
		r.registered(f, in, out)
		return false
	case Group:
		r.stepping = false
		return in.OK
	case Outlived:
		r.outliving = false
		return false
	case Raising:
		r.raising = false
		return false
	}
	return true
}

// found founds the cluster if this has not been done.
func (r *Reign) found(f *Facts, out *Output) {
	switch {
	case r.listening:
	case f.State.Cluster != "":
		r.listening, out.Listen, r.due = true, true, f.Now
	case r.founding, r.lost, f.Now < r.held:
	case r.cfg.Found == nil:
		r.lost, out.Problem = true, "the group has a leader, but the cluster was never founded"
	default:
		r.founding = true
		command := shared.Command{Found: r.cfg.Found}.Encode()
		out.Proposals = append(out.Proposals, Proposal{What: Foundation, Command: command, Only: core.Condition{Term: r.cfg.Term}})
	}
}

func (r *Reign) founded(f *Facts, in Done, out *Output) {
	r.founding = false
	switch {
	case !in.OK:
		r.held = f.Now + retry
	case in.Result.Err() != nil:
		r.lost, out.Fail = true, in.Result.Err()
	}
}
