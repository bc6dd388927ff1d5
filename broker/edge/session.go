package edge

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

const (
	// MinLease is the shortest lease that a session may ask for: below it, a keep-alive every half lease is all there is.
	MinLease = 100 * time.Millisecond

	// maxSessionCache is how many verified session tokens are remembered; one more empties the memory.
	maxSessionCache = 128 << 10
)

// Sessions opens the sessions of one zone and verifies their tokens. It is not safe for concurrent use.
type Sessions struct {
	tokens      *tokens
	verified    map[string]verified // by token
	incarnation uint64              // of the session that was opened last
}

// verified is whose session a token is.
type verified struct {
	user    string
	session bucket.Session
}

// NewSessions derives its keys from the cluster's secret (32 bytes).
func NewSessions(clusterSecret []byte, zone string) *Sessions {
	return &Sessions{tokens: newTokens(clusterSecret, zone), verified: make(map[string]verified)}
}

// Leases are the bounds of sessions' leases.
type Leases struct {
	Default time.Duration // if none is asked for
	Max     time.Duration
}

// Verify says whose session a token is; ErrToken. The lease is the token's, whatever the longest is by now: the tables keep the session
// by it, and [Promise] is what its client is told.
func (s *Sessions) Verify(user, token string) (bucket.Session, error) {
	if v, ok := s.verified[token]; ok && v.user == user {
		return v.session, nil
	}
	session, err := s.tokens.verify(user, token)
	if err != nil {
		return bucket.Session{}, err
	}
	if len(s.verified) >= maxSessionCache {
		clear(s.verified)
	}
	// Copies: the request's own texts may be parts of longer ones.
	user, token = strings.Clone(user), strings.Clone(token)
	session.ID = token[:len(session.ID)]
	s.verified[token] = verified{user, session}
	return session, nil
}

// Promise is the lease that a keep-alive promises a session: a token may be older than the longest lease is set.
func Promise(session *bucket.Session, longest time.Duration) time.Duration {
	return min(session.Lease, longest)
}

// ErrSessionID is what Open says of an id that is not made of SessionRawLen bytes.
var ErrSessionID = errors.New("not the id of a session")

// randomOf gives the bytes that a session's id was made of.
func randomOf(id string) (uint64, error) {
	raw, err := tokenText.DecodeString(id)
	if err != nil || len(raw) != SessionRawLen {
		return 0, fmt.Errorf("%w: %q", ErrSessionID, id)
	}
	return binary.BigEndian.Uint64(raw), nil
}

// Open makes a session, or takes an earlier one up again with a higher incarnation. It asks nobody: the buckets learn of the
// session from its first request, and judge the openings by comparing them. Wall time (Unix milliseconds) keeps the numbers
// rising when one secret is used twice; the secret's own number keeps them rising when the wall clock is set back. Two nodes may
// give one number: then the connections are compared (package bucket's doc), and an opening that names none has random bits for that.
// id is drawn at random for each call, the public id of a new session (NewID). The reply lacks its Node. ErrSessionID is the only error.
func (s *Sessions) Open(wall int64, id, user string, req *subjects.Request, leases Leases) (*subjects.Opened, *subjects.Refusal, error) {
	lease, refusal := leases.of(req)
	if refusal != nil {
		return nil, refusal, nil
	}
	random, err := randomOf(id)
	if err != nil {
		return nil, nil, err
	}
	session := bucket.Session{ID: id, Incarnation: max(uint64(wall), s.incarnation+1), Lease: lease, Conn: bucket.Conn{CID: random}}
	if req.Secret != "" {
		var last uint64
		session.ID, last, err = s.tokens.comeBack(user, req.Secret)
		if err != nil {
			return nil, &subjects.Refusal{Code: 403, Reason: subjects.ReasonDenied, Field: "secret",
				Message: "secret: not the secret of a session of this user in this cluster; leave it out to begin a new session"}, nil
		}
		session.Incarnation = max(session.Incarnation, last+1)
	}
	s.incarnation = session.Incarnation
	disconnect := "ttl"
	if req.Server != "" && req.CID != 0 {
		session.Conn = ConnOf(req.Server, req.CID)
		disconnect = "event"
	}
	token, secret, err := s.tokens.mint(user, session)
	if err != nil {
		return nil, nil, err
	}
	return &subjects.Opened{
		Session: token, Secret: secret, User: user, TTL: lease, Lease: lease, Incarnation: session.Incarnation,
		Disconnect: disconnect, Events: subjects.SessionEventSubject(user, session.ID),
	}, nil, nil
}

// of is the lease that a session gets: what it asks for, at most the longest.
func (l Leases) of(req *subjects.Request) (time.Duration, *subjects.Refusal) {
	if req.Has&subjects.HasTTL == 0 {
		return min(l.Default, l.Max), nil
	}
	if req.TTL < MinLease {
		return 0, &subjects.Refusal{Code: 400, Reason: subjects.ReasonBadRequest, Field: "ttl",
			Message: "ttl: a session's lease is at least " + MinLease.String()}
	}
	return min(req.TTL, l.Max).Truncate(time.Millisecond), nil
}
