package shared

import (
	"maps"
	"slices"
	"time"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf"
)

// Limits of what the shared configuration holds.
const (
	MaxNodes   = chain.MaxChain // nodes, arbiters too
	MaxLife    = 1<<32 - 1      // the highest life of a node: chain.Member.Inc has it in its upper half
	MaxStarts  = 256            // earlier starts that a node may tell
	maxRemoved = 4096           // raft IDs of removed nodes that are remembered
	maxAddrs   = 16             // routes, or addresses for clients, of one node
)

// Priorities of a node: the one with the lowest number leads. A node of LowestPriority leads or is primary only if nothing
// else is left.
const (
	HighestPriority = 1
	DefaultPriority = 5
	LowestPriority  = 15
)

// State is the shared configuration as of one change. It is never changed: every change makes another State, which shares
// with the one before what is the same. So it may be read by anybody for as long as they like, and must not be written to.
type State struct {
	Change  uint64 // Raft index of the last change that was applied, refused ones too
	Cluster string // name; "" until the cluster was founded
	Locked  bool   // the configuration can be changed only after it was unlocked
	Term    uint64 // of the newest leader that has told of its term; views that an older one has planned do not count

	Nodes    []Node // by number
	Settings Settings
	Zones    []conf.Zone              // by name
	Keys     map[string]conf.ZoneKeys // by the zone's name; the seeds in it are secrets
	Views    []chain.View             // by bucket; Epoch 0: there is none yet
	Pins     map[uint32]uint64        // buckets that were moved by hand, and the number of the node that is to be primary

	// Longest is the longest lease that a client may have, if max_lease was longer than it is, since the change Shortened; 0: it
	// was not.
	Longest   time.Duration
	Shortened uint64

	Level uint32 // by which commands are applied; 0: 1 (AppliedBy)

	Last    uint64   // the highest number that a node was given
	Removed []uint64 // raft IDs of nodes that were removed, in that order: they never come back
}

// Node is a daemon or an arbiter that has registered.
type Node struct {
	ID       string   `json:"id"`     // identifier, from the file node-id
	Number   uint64   `json:"number"` // 1 and up, never reused: chain.Member.Node
	Raft     uint64   `json:"raft"`   // raft ID of its control store
	Life     uint64   `json:"life"`   // 1 and up: how often it has begun without a complete journal
	Name     string   `json:"name"`   // for people
	Location string   `json:"location,omitempty"`
	Priority int      `json:"priority"` // HighestPriority to LowestPriority
	Routes   []string `json:"routes,omitempty"`
	Clients  []string `json:"clients,omitempty"`
	Arbiter  bool     `json:"arbiter,omitempty"` // votes and has no buckets
	Drain    bool     `json:"drain,omitempty"`   // is to be primary of nothing
	Edited   []string `json:"edited,omitempty"`  // what was set by hand, and its own configuration does not change any more
	Level    uint32   `json:"level,omitempty"`   // that its program knows; 0: 1 (Reaches)
	// Registered is the change ID of the last registration, Start what that brought along: the number of the process.
	Registered uint64 `json:"registered"`
	Start      uint64 `json:"start,omitempty"`
}

// Member is the node's copy of a bucket that it has begun in its present life and never thrown away.
func (n *Node) Member() chain.Member { return chain.Member{Node: n.Number, Inc: n.Life << 32} }

// Node finds a node by its number, nil if there is none.
func (s *State) Node(number uint64) *Node {
	return s.node(func(n *Node) bool { return n.Number == number })
}

// NodeByID finds a node by its identifier, nil if there is none.
func (s *State) NodeByID(id string) *Node { return s.node(func(n *Node) bool { return n.ID == id }) }

// NodeByRaft finds a node by its raft ID, nil if there is none.
func (s *State) NodeByRaft(id uint64) *Node {
	return s.node(func(n *Node) bool { return n.Raft == id })
}

// NodeByName finds a node by its name, nil if there is none.
func (s *State) NodeByName(name string) *Node {
	return s.node(func(n *Node) bool { return n.Name == name })
}

func (s *State) node(is func(*Node) bool) *Node {
	for i := range s.Nodes {
		if is(&s.Nodes[i]) {
			return &s.Nodes[i]
		}
	}
	return nil
}

// Lives says whether the member can still exist: its node is registered, and in that life.
func (s *State) Lives(m chain.Member) bool {
	n := s.Node(m.Node)
	return n != nil && !n.Arbiter && m.Inc>>32 == n.Life
}

// Buckets is their number, 0 before the cluster was founded.
func (s *State) Buckets() uint32 { return uint32(len(s.Views)) }

// Zone finds a zone, ok is false if there is none of that name.
func (s *State) Zone(name string) (z conf.Zone, ok bool) {
	i, ok := s.zoneAt(name)
	if !ok {
		return conf.Zone{}, false
	}
	return s.Zones[i], true
}

func (s *State) zoneAt(name string) (int, bool) {
	return slices.BinarySearchFunc(s.Zones, name, func(z conf.Zone, name string) int {
		switch {
		case z.Name < name:
			return -1
		case z.Name > name:
			return 1
		}
		return 0
	})
}

// pinned are the pinned buckets in order.
func (s *State) pinned() []uint32 { return slices.Sorted(maps.Keys(s.Pins)) }
