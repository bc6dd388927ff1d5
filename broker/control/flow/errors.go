package flow

import "errors"

// Why a node cannot go on as the one that it says it is. Package control gives the same ones.
var (
	// ErrDuplicate says that another node lives under this one's identifier.
	ErrDuplicate = errors.New("another node with this identifier is alive: give each node its own data directory")
	// ErrRemoved says that this node was removed from the cluster: it can come back only as a new one, with an empty data
	// directory.
	ErrRemoved = errors.New("this node was removed from the cluster")
	// ErrRefused says that the leader refused the registration; the text says why.
	ErrRefused = errors.New("the leader refuses to register this node")
	// ErrOldDisk says that what the node had on its disk is older than its last start, which nobody could tell before.
	ErrOldDisk = errors.New("what this node has on its disk is older than its last start")
	// ErrLease says that this node has not been able to ask how long the cluster's leases are, and has begun with another
	// length. When it is started again it asks once more.
	ErrLease = errors.New("this node has begun with another node_lease than the cluster's")
	// ErrOldVoter says that the node cannot begin as one that has lost everything, since its group has nobody left then.
	ErrOldVoter = errors.New("what this node has on its disk is older than its last start, and without its vote the other nodes " +
		"cannot elect a leader: put the newest copy of its data directory back. If there is none, stop all nodes, start this one " +
		"alone, then the others with empty data directories: what was decided since the copy was made is lost then")
)
