package subjects

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Cluster answers cluster: what the nodes and the buckets look like. It is asked for by people, so general JSON is good
// enough for it. Nodes are named by their numbers.
type Cluster struct {
	Cluster string          `json:"cluster"`
	Change  uint64          `json:"change"` // of the shared configuration, where it was asked
	Mode    string          `json:"mode"`
	Quorum  ClusterQuorum   `json:"quorum"`
	Leader  uint64          `json:"leader,omitempty"` // 0 if none is known
	Total   uint32          `json:"total"`            // buckets that there are
	Nodes   []ClusterNode   `json:"nodes"`            // by number
	Buckets []ClusterBucket `json:"buckets"`          // those that were asked for, or those that are not as they should be
	More    int             `json:"more,omitempty"`   // buckets of that kind that were left out
}

// ClusterQuorum is how many nodes there are, and how many new locks need.
type ClusterQuorum struct {
	Have int `json:"have"`
	Need int `json:"need"`
}

// ClusterNode is one node. What follows Arbiter is told by the node itself, so it is missing while the node does not answer.
type ClusterNode struct {
	Number   uint64 `json:"number"`
	Node     string `json:"node"` // identifier
	Name     string `json:"name"`
	Location string `json:"location,omitempty"`
	Priority int    `json:"priority"`
	Status   string `json:"status"` // up, away, draining, stopping
	Arbiter  bool   `json:"arbiter,omitempty"`

	Answered bool     `json:"answered"`
	Leader   bool     `json:"leader,omitempty"`
	Voter    bool     `json:"voter,omitempty"`
	Change   uint64   `json:"change,omitempty"`  // of the shared configuration
	Digest   string   `json:"digest,omitempty"`  // of it, 16 hex digits: nodes with the same change must have the same
	Lease    string   `json:"lease,omitempty"`   // what is left of the node's lease, a duration
	Refused  string   `json:"refused,omitempty"` // why it has none
	Away     []uint64 `json:"away,omitempty"`    // nodes that it does not reach
	Direct   []uint64 `json:"direct,omitzero"`   // nodes with which it has a direct link; absent if it wants none, or is of an older version

	Primaries int    `json:"primaries"` // buckets of which it is the primary, and may act
	Copies    int    `json:"copies"`    // buckets of which it has a copy in the chain
	Degraded  int    `json:"degraded"`  // of its primaries: those that answer alone
	Recovery  int    `json:"recovery"`  // of its primaries: those in recovery
	Lag       uint64 `json:"lag"`       // how many changes the furthest of its copies is behind its primary
}

// ClusterBucket is one bucket, as the last committed view has it.
type ClusterBucket struct {
	Bucket    uint32        `json:"bucket"`
	Primary   uint64        `json:"primary"` // 0 if it has none yet
	Epoch     uint64        `json:"epoch"`
	Chain     []uint64      `json:"chain"`             // the primary first
	InSync    int           `json:"in_sync"`           // how many of the chain every answer waits for
	Acting    bool          `json:"acting"`            // the primary may answer
	Degraded  bool          `json:"degraded"`          // it answers alone
	Recovery  bool          `json:"recovery"`          // answered changes may be missing: nothing is granted yet
	Confirmed uint64        `json:"confirmed"`         // number of the newest change that may be answered; 0 if that is not told
	Copies    []ClusterCopy `json:"copies"`            // of the nodes that answered
	Problem   string        `json:"problem,omitempty"` // what is not as it should be
}

// ClusterCopy is one node's copy of a bucket.
type ClusterCopy struct {
	Node    uint64 `json:"node"`
	Role    string `json:"role"` // primary, secondary, joining, outside
	Epoch   uint64 `json:"epoch"`
	Lag     uint64 `json:"lag"`               // changes that it is behind the primary
	History string `json:"history"`           // equal, differs; behind: it cannot be compared, as it is not as far; unknown
	Stopped string `json:"stopped,omitempty"` // why the copy must not be used
}

// AppendJSON implements Body.
func (c *Cluster) AppendJSON(dst []byte) []byte {
	text, err := json.Marshal(c)
	if err != nil { // numbers and texts can always be written
		return append(dst, "{}"...)
	}
	return append(dst, text...)
}

// DecodeJSON reads the answer to cluster.
func (c *Cluster) DecodeJSON(b []byte) error {
	*c = Cluster{}
	if !utf8.Valid(b) { // encoding/json would put other characters there, and skips the keys that it does not know
		return fmt.Errorf("%w: the answer to cluster is not UTF-8", ErrBody)
	}
	if err := json.Unmarshal(b, c); err != nil {
		return fmt.Errorf("%w: the answer to cluster: %w", ErrBody, err)
	}
	if c.Nodes == nil || c.Buckets == nil {
		return fmt.Errorf("%w: not the answer to cluster", ErrBody)
	}
	return nil
}
