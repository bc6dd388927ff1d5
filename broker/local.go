package broker

import (
	"crypto/rand"
	"time"

	"github.com/opencluster/oclocks/broker/edge"
	"github.com/opencluster/oclocks/internal/fault"
	"github.com/opencluster/oclocks/subjects"
)

// ProtocolVersion is the version of docs/protocol.md that this broker speaks.
const ProtocolVersion = 1

// features names what this broker can do beyond the first version of the protocol.
var features = []string{"enqueue", "recall", "name64", "require", "lock-events", "cluster", "bundles"}

// local answers the operations that need no lock table; nil for the others.
func (z *zone) local(t *task) subjects.Body {
	switch t.req.Op {
	case subjects.OpInfo:
		return z.info(t.in.User)
	case subjects.OpServers:
		return z.servers(t.req.Location)
	case subjects.OpPing:
		if pong := z.ping(t.req.Node); pong != nil {
			return pong
		}
	case subjects.OpSessionOpen:
		return z.openSession(t)
	case subjects.OpSessionClose, subjects.OpKeep:
		if refusal := z.withSession(t); refusal != nil {
			return refusal
		}
	}
	return nil
}

// withSession refuses a request that must name a session and does not.
func (z *zone) withSession(t *task) *subjects.Refusal {
	if t.in.Session.ID != "" {
		return nil
	}
	return &subjects.Refusal{Code: 400, Reason: subjects.ReasonBadRequest, Field: "session",
		Message: "session: expected the session token that session-open gave"}
}

func (z *zone) info(user string) *subjects.Info {
	d := z.d
	h := d.health()
	return &subjects.Info{
		Protocol: ProtocolVersion, Features: features, Version: d.version, Cluster: h.state.Cluster, Zone: z.name,
		User: user, Node: d.node, Buckets: uint32(d.buckets()), Map: d.bucketMap(), Mode: h.mode(), Have: h.live,
		Need: h.state.Settings.MinQuorum, MaxLease: d.maxLease(),
	}
}

// pingAgain is when a node that was not there may be asked again.
const pingAgain = time.Second

// ping answers for this node, and leaves other nodes to pingAt.
func (z *zone) ping(node string) subjects.Body {
	if node != "" && node != z.d.node {
		return nil
	}
	return &subjects.Pong{Node: z.d.node, Now: fault.Wall().UnixMilli()}
}

// maxLease is the longest lease that is promised: what the cluster is set to. What a daemon alone was told at this start may be
// less. Before the cluster is known nothing is.
func (d *Daemon) maxLease() time.Duration {
	if state := d.state.Load(); state != nil && d.settings.Clustered() {
		return state.Settings.MaxLease
	} else if state != nil {
		return min(state.Settings.MaxLease, d.settings.MaxLease)
	}
	return d.settings.MaxLease
}

// openSession makes a session, or takes an earlier one up again.
func (z *zone) openSession(t *task) subjects.Body {
	var random [edge.SessionRawLen]byte
	rand.Read(random[:]) // never fails: crypto/rand ends the program instead
	leases := edge.Leases{Default: z.d.state.Load().Settings.SessionLease, Max: z.d.maxLease()}
	opened, refusal, err := z.sessions.Open(fault.Wall().UnixMilli(), edge.NewID(random), t.in.User, &t.req, leases)
	switch {
	case err != nil:
		z.d.log.Error("open a session", "error", err)
		return &subjects.Refusal{Code: 503, Reason: subjects.ReasonUnavailable, Message: "no session can be made now"}
	case refusal != nil:
		return refusal
	}
	opened.Node = z.d.node
	return opened
}
