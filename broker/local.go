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
var features = []string{"enqueue", "recall", "name64", "require", "lock-events"}

// local answers the operations that need no lock table; nil for the others.
func (z *zone) local(t *task) subjects.Body {
	switch t.req.Op {
	case subjects.OpInfo:
		return z.info(t.in.User)
	case subjects.OpServers:
		return z.servers(t.req.Location)
	case subjects.OpPing:
		return z.ping(t.req.Node)
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
	return &subjects.Info{
		Protocol: ProtocolVersion, Features: features, Version: d.version, Cluster: d.settings.Cluster, Zone: z.name,
		User: user, Node: d.node, Buckets: d.settings.Buckets, Map: d.bucketMap(), Mode: "normal", Have: 1, Need: 1,
		MaxLease: d.settings.MaxLease,
	}
}

// servers lists this node, the only one until there is a cluster.
func (z *zone) servers(string) subjects.Body {
	if z.d.settings.HideServers {
		return &subjects.Refusal{Code: 403, Reason: subjects.ReasonDenied,
			Message: "this cluster does not tell its servers; stay at the address that you were given"}
	}
	return &subjects.Servers{Servers: []subjects.Server{z.d.server()}}
}

func (z *zone) ping(node string) subjects.Body {
	if node != "" && node != z.d.node {
		return &subjects.Refusal{Code: 400, Reason: subjects.ReasonBadRequest, Field: "node",
			Message: "node: there is no node " + node + "; `servers` lists them"}
	}
	return &subjects.Pong{Node: z.d.node, Now: time.Now().UnixMilli()}
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
		return min(z.d.settings.SessionLease, z.d.settings.MaxLease), nil
	}
	if req.TTL < minLease {
		return 0, &subjects.Refusal{Code: 400, Reason: subjects.ReasonBadRequest, Field: "ttl",
			Message: "ttl: a session's lease is at least " + minLease.String()}
	}
	return min(req.TTL, z.d.settings.MaxLease).Truncate(time.Millisecond), nil
}
