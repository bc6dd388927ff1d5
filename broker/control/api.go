package control

import (
	"encoding/json"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/broker/control/desk"
	"github.com/opencluster/oclocks/conf/shared"
)

// Copies are this node's copies of the buckets. All calls come from one goroutine, in order, after [Control.Serve]. They
// must not block long: the node's lease is told by the same goroutine.
type Copies = desk.Copies

// Config of a node's control plane.
type Config struct {
	Identifier string // of this node: conf.NodeID
	Name       string
	Location   string
	Priority   int      // 0: shared.DefaultPriority
	Routes     []string // HOST:PORT, for other nodes
	Clients    []string // HOST:PORT
	Fresh      bool     // it begins without a complete journal: it is given another life

	// Journal names the journal's directory as this process has it, and is stored when the node is registered. Lacks says whether what
	// was in the directory at this start is from before such a mark: then the node is Fresh. "" and nil: nothing is known.
	Journal string
	Lacks   func(mark string) bool

	Dir   string        // where control.db is kept; "": in memory, and lost with the process
	Found *shared.Found // found a cluster if there is none; nil: this node must join one
	Conn  *nats.Conn    // into the account of the nodes; the caller closes it after Close

	// Watch calls the function for every route to another node: at once for those that are open, then when one opens or closes,
	// with the node's identifier, one call at a time; until the function that it gives back is called. A node that was
	// restarted is told as gone first. Nil: nothing is known of routes, and all nodes count as connected.
	Watch func(func(identifier string, up bool)) (stop func())
	// Alert gets every alert of every node; it must not block. Nil: alerts are only logged.
	Alert func(Alert)
	// Describe gives what the node's copies look like, for Status. It may take some milliseconds. Nil: nothing is told.
	Describe func() json.RawMessage
	// NodeLease is how long the nodes of a new cluster may act without hearing from the leader; 0: arbiter.DefaultLease. What the
	// node's cluster has goes before it.
	NodeLease time.Duration
	Plan      plan.Config  // times of the planner; a zero field has the default
	Logger    *slog.Logger // nil: slog.Default
}

// Alert is something that people should look into.
type Alert struct {
	Node   uint64    `json:"node"`   // the number of the node that tells it
	Bucket int64     `json:"bucket"` // -1: it is about no bucket
	Text   string    `json:"text"`   // at most MaxAlert bytes
	Time   time.Time `json:"time"`
}

// MaxAlert is the longest text of an alert in bytes; a longer one is cut.
const MaxAlert = 2048

// Status is one node as it sees itself.
type Status struct {
	Identifier string `json:"identifier"`
	Number     uint64 `json:"number,omitempty"` // 0: not registered yet
	Life       uint64 `json:"life,omitempty"`
	Name       string `json:"name"`
	Location   string `json:"location,omitempty"`
	Raft       uint64 `json:"raft"`

	Leader  uint64 `json:"leader,omitempty"` // number of the node that leads, 0 if none is known
	Term    uint64 `json:"term"`
	Leading bool   `json:"leading,omitempty"`
	Voter   bool   `json:"voter,omitempty"`
	Change  uint64 `json:"change"` // applied here
	Digest  uint64 `json:"digest"` // of the shared configuration after it

	Lease   time.Duration `json:"lease"` // what is left of the node's lease, in nanoseconds; 0 if it holds none
	Live    int           `json:"live"`  // nodes that held a lease when this one was granted
	Refused string        `json:"refused,omitempty"`
	Away    []uint64      `json:"away,omitempty"` // nodes that messages do not reach
	Leaving bool          `json:"leaving,omitempty"`

	Copies json.RawMessage `json:"copies,omitempty"` // Config.Describe
}
