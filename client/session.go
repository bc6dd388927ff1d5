package client

import (
	"context"
	"fmt"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// SessionInfo describes the client's session.
type SessionInfo struct {
	ID          string // public: it is shown in queries
	Token       string // proves the session in requests; keep it to yourself
	Secret      string // to come back with (WithSecret); keep it to yourself
	User        string
	Lease       time.Duration
	Incarnation uint64 // rises whenever the session comes back
	Node        string // that opened it
	Disconnect  string // "event": the broker notices when the connection is closed; "ttl": by silence only
	Events      string // subject of its events
}

// Session opens the session if there is none, and keeps it alive from now on also while it holds nothing.
func (c *Client) Session(ctx context.Context) (SessionInfo, error) {
	result, err := c.await(ctx, c.lend())
	switch {
	case err != nil:
		return SessionInfo{}, fmt.Errorf("open a session: %w", err)
	case result.Refusal != nil || result.Err != nil:
		return SessionInfo{}, failed("open a session", "", result)
	}
	var opened subjects.Opened
	var ok bool
	c.do(func(now int64) {
		c.m.KeepSession(now)
		opened, ok = c.m.Session()
	})
	if !ok {
		return SessionInfo{}, fmt.Errorf("open a session: %w as soon as it was open", ErrSession)
	}
	address, err := subjects.ParseEvent(opened.Events)
	if err != nil {
		return SessionInfo{}, fmt.Errorf("open a session: the broker names no subject for its events: %w", err)
	}
	return SessionInfo{
		ID: address.ID, Token: opened.Session, Secret: opened.Secret, User: opened.User, Lease: opened.Lease,
		Incarnation: opened.Incarnation, Node: opened.Node, Disconnect: opened.Disconnect, Events: opened.Events,
	}, nil
}
