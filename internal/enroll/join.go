package enroll

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"

	"github.com/opencluster/oclocks/conf"
)

const (
	connectTime = 3 * time.Second        // for each address of the token
	retryPause  = 500 * time.Millisecond // after nobody was reached
	askAgain    = 2 * time.Second        // after no answer came
)

// Joined is what a new node has become.
type Joined struct {
	Node     string          // its identifier
	Cluster  string          // name of the cluster
	Identity *conf.Identity  // its certificate
	Settings json.RawMessage // what the daemon that answered gave for new nodes; nil for nothing
}

// Join asks the cluster of the token to let the node with that data directory in, which may be missing, and writes what it
// gets there. If it fails, or is cut short, the directory belongs to no cluster, and the same token can be tried again
// there. name is for people: it goes into the log of the daemon that answers. Errors: conf.ErrToken, conf.ErrExpired,
// conf.ErrExists if the node is in a cluster already, ErrUsed, ErrRefused, ErrForged; ErrUnreachable when ctx ends before
// a daemon has answered.
func Join(ctx context.Context, token, data, name string) (*Joined, error) {
	t, err := conf.ParseJoinToken(token)
	if err != nil {
		return nil, err
	}
	if err := t.CheckExpiry(time.Now()); err != nil {
		return nil, fmt.Errorf("%w by this machine's clock: make a new one", err)
	}
	if err := conf.CheckNew(data, t.Key); err != nil {
		return nil, err
	}
	node, err := conf.NodeID(data)
	if err != nil {
		return nil, err
	}
	a, err := request(ctx, t, node, name)
	if err != nil {
		return nil, fmt.Errorf("join the cluster: %w", err)
	}
	identity, err := a.Membership.Enter(data, node)
	if err != nil {
		return nil, fmt.Errorf("join the cluster: %w", err)
	}
	return &Joined{Node: node, Cluster: identity.Authority().Cluster(), Identity: identity, Settings: a.Settings}, nil
}

// request asks until a daemon has answered.
func request(ctx context.Context, t *conf.JoinToken, node, name string) (answer, error) {
	own, err := nkeys.CreateCurveKeys()
	if err != nil {
		return answer{}, fmt.Errorf("make a key: %w", err)
	}
	message, err := makeRequest(t, own, node, name)
	if err != nil {
		return answer{}, err
	}
	nc, err := connect(ctx, t)
	if err != nil {
		return answer{}, err
	}
	defer nc.Close()
	for {
		a, err := exchange(ctx, nc, t, own, message)
		if !errors.Is(err, errSilence) {
			return a, err
		}
		if ctx.Err() != nil {
			return answer{}, fmt.Errorf("%w: %s: %w", ErrUnreachable, strings.Join(t.URLs, ", "), err)
		}
	}
}

// connect tries the addresses of the token until one takes it.
func connect(ctx context.Context, t *conf.JoinToken) (*nats.Conn, error) {
	creds := t.Credentials()
	for {
		nc, err := nats.Connect(strings.Join(t.URLs, ","),
			nats.Name("oclocks join"),
			nats.UserJWT(func() (string, error) { return creds.JWT, nil }, creds.Pair.Sign),
			nats.CustomInboxPrefix(conf.InboxPrefix(t.ID())),
			nats.Timeout(connectTime), nats.IgnoreDiscoveredServers(), nats.ReconnectBufSize(-1), nats.MaxReconnects(-1),
			nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}), // the missing answer tells it
		)
		switch {
		case err == nil:
			return nc, nil
		case errors.Is(err, nats.ErrAuthExpired):
			return nil, fmt.Errorf("%w by the clock of the cluster", conf.ErrExpired)
		case errors.Is(err, nats.ErrAuthorization):
			return nil, fmt.Errorf("%w: it expired by the clock of the cluster, or it is of another one", ErrRefused)
		}
		select {
		case <-time.After(retryPause):
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: %s: %w", ErrUnreachable, strings.Join(t.URLs, ", "), err)
		}
	}
}

// errSilence says that no answer came.
var errSilence = errors.New("no answer")

// exchange asks once and waits a while for the whole answer.
func exchange(ctx context.Context, nc *nats.Conn, t *conf.JoinToken, own nkeys.KeyPair, message []byte) (answer, error) {
	inbox := nc.NewRespInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		return answer{}, fmt.Errorf("%w: %w", errSilence, pause(ctx, err))
	}
	defer func() {
		if nc.IsConnected() {
			_ = sub.Unsubscribe() // the connection ends with it
		}
	}()
	if err := nc.PublishRequest(conf.EnrollSubject, inbox, message); err != nil {
		return answer{}, fmt.Errorf("%w: %w", errSilence, pause(ctx, err))
	}
	wait, cancel := context.WithTimeout(ctx, askAgain)
	defer cancel()
	var got parts
	for {
		msg, err := sub.NextMsgWithContext(wait)
		if err != nil {
			if errors.Is(err, nats.ErrNoResponders) {
				err = pause(ctx, errors.New("the daemon lets no nodes in: is cluster_listen set there?"))
			}
			return answer{}, fmt.Errorf("%w: %w", errSilence, err)
		}
		var p part
		if json.Unmarshal(msg.Data, &p) != nil {
			continue
		}
		if p.Failure != nil {
			return answer{}, p.Failure.err()
		}
		if !got.add(p) {
			continue
		}
		a, err := unpack(own, t.Key, got.all())
		if err == nil && a.Failure != nil {
			err = a.Failure.err()
		}
		return a, err
	}
}

// pause waits before the next try and gives the error back.
func pause(ctx context.Context, err error) error {
	select {
	case <-time.After(retryPause):
	case <-ctx.Done():
	}
	return err
}
