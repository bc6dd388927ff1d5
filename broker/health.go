package broker

import (
	"time"

	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/internal/boottime"
)

// Modes of the cluster, as `info` and the events tell them. docs/protocol.md says what they mean.
const (
	modeNormal   = "normal"
	modeDegraded = "degraded"
	modeNoQuorum = "no-quorum"
)

// health is what a node knows of its cluster.
type health struct {
	state  *shared.State
	gone   func(node uint64) bool // known not to be reached
	leased bool                   // this node holds a lease, so a majority of the voters is there
	live   int                    // nodes that hold a lease
}

func (d *Daemon) health() health {
	state := d.state.Load()
	h := health{state: state, gone: d.peers.gone, leased: d.leaseLeft() > 0, live: int(d.live.Load())}
	if !h.leased {
		h.live = h.reached()
	}
	return h
}

// leaseLeft is how long this node may act without another lease, at least 0.
func (d *Daemon) leaseLeft() time.Duration {
	return max(0, time.Duration(d.leaseUntil.Load()-boottime.Now()))
}

// reached is how many nodes this one knows to be there, itself too.
func (h *health) reached() (n int) {
	for i := range h.state.Nodes {
		if node := &h.state.Nodes[i]; !node.Arbiter && !h.gone(node.Number) {
			n++
		}
	}
	return n
}

// mode is that of the cluster.
func (h *health) mode() string {
	switch {
	case !h.leased || h.live < h.state.Settings.MinQuorum:
		return modeNoQuorum
	case h.degraded():
		return modeDegraded
	}
	return modeNormal
}

// degraded says whether less stands between the cluster and a loss than it is set up with: a node is away, or a bucket has
// one copy where it should have several, or is in recovery.
func (h *health) degraded() bool {
	nodes := storing(h.state)
	if h.reached() < nodes {
		return true
	}
	for i := range h.state.Views {
		if poor(h.state, uint32(i)) != "" {
			return true
		}
	}
	return false
}

// wanted is how many copies a bucket should have.
func (h *health) wanted() int { return wanted(h.state) }

func wanted(state *shared.State) int {
	copies := storing(state)
	if c := state.Settings.Copies; c > 0 {
		copies = min(copies, c)
	}
	return copies
}

// storing is how many nodes have buckets.
func storing(state *shared.State) (n int) {
	for i := range state.Nodes {
		if !state.Nodes[i].Arbiter {
			n++
		}
	}
	return n
}

// poor says what is not as it should be in the newest view of a bucket, "" if nothing.
func poor(state *shared.State, number uint32) string {
	copies := wanted(state)
	switch v := &state.Views[number]; {
	case v.Epoch == 0:
		return "it has no primary yet"
	case v.Recovery:
		return "it is in recovery: nothing is granted until every earlier lease has ended"
	case v.InSync == 1 && copies > 1:
		return "its primary answers alone"
	}
	return ""
}

// alone says whether no other node can have buckets.
func (d *Daemon) alone() bool { return storing(d.state.Load()) == 1 }
