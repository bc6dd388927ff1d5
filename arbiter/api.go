package arbiter

import "github.com/opencluster/oclocks/arbiter/core"

// What an arbiter tells and is told is what its core does; see there.
type (
	// Condition restricts when a proposal takes effect.
	Condition = core.Condition
	// Status is a picture of this node. Times are boot-time nanoseconds.
	Status = core.Status
	// Peer is what the leader knows of a member.
	Peer = core.Peer
	// NodeLease is what the leader knows of a node that asked it for a lease.
	NodeLease = core.NodeLease

	// Event is one of the following.
	Event = core.Event
	// Leadership tells: another leader, another term, or this node began or ceased to lead.
	Leadership = core.Leadership
	// Granted tells: this node holds a lease.
	Granted = core.Granted
	// Refusal tells: the leader refused this node a lease.
	Refusal = core.Refusal
	// Quarantine tells: on the leader, a node's state has come apart: an alert.
	Quarantine = core.Quarantine
	// Membership tells: the members are others now.
	Membership = core.Membership
	// Removed tells: this node is no member any more.
	Removed = core.Removed
)

// Limits.
const (
	MaxCommand = core.MaxCommand // bytes of one command
	MaxNote    = core.MaxNote    // bytes of a note
)
