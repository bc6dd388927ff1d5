package control

import (
	"errors"

	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/broker/control/leave"
)

var (
	// ErrConfig says that the configuration cannot be used.
	ErrConfig = errors.New("control: unusable configuration")
	// ErrDuplicate says that another node lives under this one's identifier.
	ErrDuplicate = flow.ErrDuplicate
	// ErrRemoved says that this node was removed from the cluster: it can come back only as a new one, with an empty data
	// directory.
	ErrRemoved = flow.ErrRemoved
	// ErrRefused says that the leader refused the registration; the text says why.
	ErrRefused = flow.ErrRefused
	// ErrOldDisk says that what the node had on its disk is older than its last start, which nobody could tell before. Close
	// throws the control store away; then Start begins as a node that has lost everything.
	ErrOldDisk = flow.ErrOldDisk
	// ErrLease says that this node has not been able to ask how long the cluster's leases are, and has begun with another
	// length. When it is started again it asks once more.
	ErrLease = flow.ErrLease
	// ErrOldVoter says that the node cannot begin as one that has lost everything, since its group has nobody left then.
	ErrOldVoter = flow.ErrOldVoter
	// ErrAlone says that there is no other node that this one could hand its buckets to.
	ErrAlone = leave.ErrAlone
	// ErrClosed says that Close was called.
	ErrClosed = errors.New("control: closed")
	// ErrUnavailable says that no leader answered in time.
	ErrUnavailable = errors.New("the cluster has no leader that answers")
)
