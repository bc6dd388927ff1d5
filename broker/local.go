package broker

import (
	"time"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

// ProtocolVersion is the version of docs/protocol.md that this broker speaks.
const ProtocolVersion = 1

// minLease is the shortest lease that a session may ask for: below it, a keep-alive every half lease is all there is.
const minLease = 100 * time.Millisecond

// features names what this broker can do beyond the first version of the protocol.
var features = []string{"enqueue", "recall", "name64", "require", "lock-events", "cluster"}

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
		if t.in.Session.ID == "" {
			return &subjects.Refusal{Code: 400, Reason: subjects.ReasonBadRequest, Field: "session",
				Message: "session: expected the session token that session-open gave"}
		}
	}
	return nil
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
	return &subjects.Pong{Node: z.d.node, Now: time.Now().UnixMilli()}
}

// maxLease is the longest lease that a session gets: what the cluster is set to. What a daemon alone was told at this start
// may be less.
func (d *Daemon) maxLease() time.Duration {
	limit := d.state.Load().Settings.MaxLease
	if !d.settings.Clustered() {
		limit = min(limit, d.settings.MaxLease)
	}
	return limit
}

// openSession makes a session, or takes an earlier one up again with a higher incarnation. It asks nobody: the buckets
// learn of the session from its first request, and judge the incarnations by comparing them. Wall time keeps them
// rising when one secret is used twice; the secret's own number keeps them rising when the wall clock is set back.
func (z *zone) openSession(t *task) subjects.Body {
	req := &t.req
	lease, refusal := z.lease(req)
	if refusal != nil {
		return refusal
	}
	session := bucket.Session{Incarnation: max(uint64(time.Now().UnixMilli()), z.incarnation+1), Lease: lease}
	var err error
	if req.Secret == "" {
		session.ID, err = newSessionID()
		if err != nil {
			z.d.log.Error("open a session", "error", err)
			return &subjects.Refusal{Code: 503, Reason: subjects.ReasonUnavailable, Message: "no session can be made now"}
		}
	} else {
		var last uint64
		session.ID, last, err = z.tokens.comeBack(t.in.User, req.Secret)
		if err != nil {
			return &subjects.Refusal{Code: 403, Reason: subjects.ReasonDenied, Field: "secret",
				Message: "secret: not the secret of a session of this user in this cluster; leave it out to begin a new session"}
		}
		session.Incarnation = max(session.Incarnation, last+1)
	}
	z.incarnation = session.Incarnation
	disconnect := "ttl"
	if req.Server != "" && req.CID != 0 {
		session.Conn = connOf(req.Server, req.CID)
		disconnect = "event"
	}
	token, secret, err := z.tokens.mint(t.in.User, session)
	if err != nil {
		z.d.log.Error("open a session", "error", err)
		return &subjects.Refusal{Code: 503, Reason: subjects.ReasonUnavailable, Message: "no session can be made now"}
	}
	return &subjects.Opened{
		Session: token, Secret: secret, User: t.in.User, TTL: lease, Lease: lease, Node: z.d.node,
		Incarnation: session.Incarnation, Disconnect: disconnect,
		Events: subjects.SessionEventSubject(t.in.User, session.ID),
	}
}

// lease is the lease that a session gets: what it asks for, at most max_lease.
func (z *zone) lease(req *subjects.Request) (time.Duration, *subjects.Refusal) {
	if req.Has&subjects.HasTTL == 0 {
		return min(z.d.state.Load().Settings.SessionLease, z.d.maxLease()), nil
	}
	if req.TTL < minLease {
		return 0, &subjects.Refusal{Code: 400, Reason: subjects.ReasonBadRequest, Field: "ttl",
			Message: "ttl: a session's lease is at least " + minLease.String()}
	}
	return min(req.TTL, z.d.maxLease()).Truncate(time.Millisecond), nil
}
