package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker/control"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
)

const (
	credsLife   = 10 * time.Minute
	dialWait    = 2 * time.Second
	requestWait = answerWait + time.Second
)

// Client asks a node of a cluster. Its methods may be called at the same time.
type Client struct {
	conn *nats.Conn
	key  string
	by   string
}

// Dial connects to the daemon whose data directory that is, or to another of its cluster if a url is given. ErrNoDaemon if
// nobody is there or it is of another cluster; an fs.ErrNotExist if the directory has no keys.
func Dial(data, url string) (*Client, error) {
	auth, err := conf.ReadAuth(data)
	if err != nil {
		return nil, err
	}
	if url == "" {
		running, err := conf.ReadRunning(data)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w: none runs with the data directory %s: start it", ErrNoDaemon, data)
		}
		if err != nil {
			return nil, err
		}
		url = running.URL
	}
	by := whoami()
	creds, key, err := auth.AdminUser("admin "+by, credsLife)
	if err != nil {
		return nil, err
	}
	conn, err := nats.Connect(url, nats.Name("oclocks admin "+by), nats.Timeout(dialWait), nats.NoReconnect(),
		nats.CustomInboxPrefix(conf.InboxPrefix(key)),
		nats.UserJWT(func() (string, error) { return creds.JWT, nil }, creds.Pair.Sign))
	if err != nil {
		return nil, dialError(err, data, url)
	}
	return &Client{conn: conn, key: key, by: by}, nil
}

func dialError(err error, data, url string) error {
	if errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) {
		return fmt.Errorf("%w at %s that has the keys of %s: it is of another cluster, or the clocks differ by more than some minutes (%w)",
			ErrNoDaemon, url, data, err)
	}
	return fmt.Errorf("%w at %s (%w): is it running?", ErrNoDaemon, url, err)
}

// whoami is for the log of the node: it proves nothing.
func whoami() string {
	name, host := "?", "?"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	by := strings.ToValidUTF8(name+"@"+host, "?")
	return by[:min(maxBy, len(by))]
}

// Close closes the connection.
func (c *Client) Close() { c.conn.Close() }

// ask sends a request and reads the answer into result.
func (c *Client) ask(ctx context.Context, op string, r request, result any) error {
	r.By = c.by
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode the request: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestWait)
	defer cancel()
	msg, err := c.conn.RequestWithContext(ctx, subject(op, c.key), data)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return fmt.Errorf("%w: the NATS server at %s is there, but no node behind it takes requests yet: try again",
			ErrUnavailable, c.conn.ConnectedUrl())
	case err != nil:
		return fmt.Errorf("%w (%w)", ErrUnknown, err)
	}
	var a answer
	if err := json.Unmarshal(msg.Data, &a); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	if a.Problem != "" {
		return a.err()
	}
	if err := json.Unmarshal(a.Result, result); err != nil {
		return fmt.Errorf("read the answer of node %s: %w", a.Node, err)
	}
	return nil
}

func (a *answer) err() error {
	for _, k := range kinds {
		if a.Kind == k.name && a.Problem != k.err.Error() {
			return fmt.Errorf("%w: %s", k.err, a.Problem)
		}
		if a.Kind == k.name {
			return k.err
		}
	}
	return errors.New(a.Problem)
}

// Change carries out a command. A refusal is an error of package shared (errors.Is), with a text for people. ErrUnknown: it
// may have been carried out; look at State.
func (c *Client) Change(ctx context.Context, command shared.Command) (shared.Result, error) {
	var r shared.Result
	if err := c.ask(ctx, opChange, request{Command: &command}, &r); err != nil {
		return shared.Result{}, err
	}
	return r, r.Err()
}

// State is the shared configuration, with everything that was committed before.
func (c *Client) State(ctx context.Context) (*State, error) {
	var s State
	if err := c.ask(ctx, opState, request{}, &s); err != nil {
		return nil, err
	}
	return &s, nil
}

// Users are those of a zone, in the order in which they were issued.
func (c *Client) Users(ctx context.Context, zone string) ([]conf.User, error) {
	all := []conf.User{}
	for after := ""; ; {
		var page users
		if err := c.ask(ctx, opUsers, request{Zone: zone, After: after}, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Users...)
		if !page.More || len(page.Users) == 0 {
			break
		}
		after = page.Users[len(page.Users)-1].Key
	}
	slices.SortStableFunc(all, func(a, b conf.User) int {
		return cmp.Or(a.Issued.Compare(b.Issued), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// Views are those of all buckets, in order.
func (c *Client) Views(ctx context.Context) ([]shared.BucketView, error) {
	var all []shared.BucketView
	for from := uint32(0); ; {
		var page views
		if err := c.ask(ctx, opViews, request{From: from}, &page); err != nil {
			return nil, err
		}
		all = append(all, page.Views...)
		if page.Next <= from {
			return all, nil
		}
		from = page.Next
	}
}

// Status is the cluster as its nodes see it now.
func (c *Client) Status(ctx context.Context) (*Status, error) {
	var s Status
	if err := c.ask(ctx, opStatus, request{}, &s); err != nil {
		return nil, err
	}
	return &s, nil
}

// Alerts are those that the asked node remembers, the newest last.
func (c *Client) Alerts(ctx context.Context) ([]control.Alert, error) {
	var list []control.Alert
	err := c.ask(ctx, opAlerts, request{}, &list)
	return list, err
}
