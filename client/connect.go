package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/internal/machine"
)

// Connect connects to the broker and asks it for its map of buckets, so that a wrong address or missing permissions are
// found here. ctx bounds that; the client lives until Close.
//
// The address is url (comma-separated if there are several); if that is "", NATS_URL; else that of the NATS context
// (WithContext, NATS_CONTEXT, or the one selected with `nats context select`); else nats://127.0.0.1:4222. Credentials are
// WithCredentials, NATS_CREDS, or the context's. A context that is merely selected counts only if neither url nor NATS_URL
// names the server.
func Connect(ctx context.Context, url string, opts ...Option) (*Client, error) {
	o := newOptions(opts)
	nc, own := o.conn, false
	if nc == nil {
		var err error
		if nc, err = dial(ctx, url, &o); err != nil {
			return nil, err
		}
		own = true
	}
	at := nc.ConnectedUrlRedacted() // nobody knows it any more once the connection is closed
	c, err := attach(ctx, nc, own, o)
	if err != nil {
		if own {
			nc.Close()
		}
		return nil, fmt.Errorf("connect to the lock broker at %s: %w", at, err)
	}
	return c, nil
}

// dial connects to NATS, and keeps the options with which it did.
func dial(ctx context.Context, url string, o *options) (*nats.Conn, error) {
	nopts, err := natsOptions(ctx, url, *o)
	if err != nil {
		return nil, err
	}
	user, err := jwtUser(nopts)
	if err != nil {
		return nil, err
	}
	if user != "" {
		nopts.InboxPrefix = inboxPrefix(user)
	}
	if o.nearest {
		nopts.Servers, nopts.NoRandomize = nearestFirst(ctx, nopts.Servers), true
	}
	o.dialed = nopts
	nc, err := nopts.Connect()
	if errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) || errors.Is(err, nats.ErrAuthRevoked) {
		return nil, fmt.Errorf("connect to NATS at %s: %w: %w", strings.Join(nopts.Servers, ","), ErrDenied, err)
	}
	if err != nil {
		return nil, fmt.Errorf("connect to NATS at %s: %w: %w", strings.Join(nopts.Servers, ","), ErrUnavailable, err)
	}
	return nc, nil
}

// natsOptions puts together what url, the environment, the NATS context and the options say.
func natsOptions(ctx context.Context, url string, o options) (*nats.Options, error) {
	if url == "" {
		url = os.Getenv("NATS_URL")
	}
	var fromContext natsContext
	if url == "" || o.context != "" || os.Getenv("NATS_CONTEXT") != "" {
		var err error
		if fromContext, err = loadContext(o.context); err != nil {
			return nil, err
		}
	}
	creds := o.credentials
	if creds == "" {
		creds = os.Getenv("NATS_CREDS")
	}
	if creds != "" {
		fromContext = natsContext{URL: fromContext.URL, Creds: creds, Cert: fromContext.Cert, Key: fromContext.Key,
			CA: fromContext.CA, TLSFirst: fromContext.TLSFirst}
	}
	if url == "" {
		url = fromContext.URL
	}
	if url == "" {
		url = nats.DefaultURL
	}
	chosen, err := fromContext.options()
	if err != nil {
		return nil, err
	}
	nopts := nats.GetDefaultOptions()
	for server := range strings.SplitSeq(url, ",") {
		nopts.Servers = append(nopts.Servers, strings.TrimSpace(server))
	}
	for _, opt := range append(append(ownOptions(ctx, o), chosen...), o.nats...) {
		if err := opt(&nopts); err != nil {
			return nil, fmt.Errorf("set a NATS option: %w", err)
		}
	}
	return &nopts, nil
}

// A connection whose other end says nothing is given up after 2 to 3 pings: 1.4 to 2.1 s.
const (
	pingEvery  = 700 * time.Millisecond
	pingsUnmet = 2
)

// ownOptions are what a client of locks wants of its connection: to come back at once, at another server, and for ever, to
// notice a dead one, and not to send later what could not be sent now.
func ownOptions(ctx context.Context, o options) []nats.Option {
	timeout := o.timeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = max(min(timeout, time.Until(deadline)), time.Millisecond)
	}
	return []nats.Option{
		nats.Name("oclocks " + o.name),
		nats.Timeout(timeout),
		nats.MaxReconnects(-1),
		nats.ReconnectToServer(o.road.next),
		nats.ReconnectWait(machine.MinRest),
		nats.ReconnectJitter(machine.MaxRest-machine.MinRest, machine.MaxRest-machine.MinRest),
		nats.ReconnectBufSize(-1),
		nats.PingInterval(pingEvery),
		nats.MaxPingsOutstanding(pingsUnmet),
		nats.FlusherTimeout(pingsUnmet * pingEvery), // a publish that stands still keeps the pings from being sent
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			o.log.Warn("NATS", "error", err) // without a handler, nats.go would print it
		}),
	}
}

// attach makes a client of a connection: finds out who we are, and how many buckets there are.
func attach(ctx context.Context, nc *nats.Conn, own bool, o options) (*Client, error) {
	user, err := identify(ctx, nc, &nc.Opts)
	if err != nil {
		return nil, err
	}
	c := newClient(nc, own, user, o)
	first := machine.Config{
		User: user, Buckets: 1, Timeout: o.timeout, Lease: o.lease, Secret: o.secret, Name: o.name, Location: o.location,
		FirstBeat: firstBeat(time.Now()), Seed: uint64(boottime.Now()), MaxCalls: maxCalls, Conn: connName(nc),
		Lanes: c.lanesAllowed(), Busy: o.laneBusy,
	}
	if !own {
		if c.company, err = enterCompany(nc, user); err != nil {
			return nil, err
		}
		first.InStep, first.Phase = true, c.company.phase
	}
	if err := c.start(first); err != nil {
		if c.company != nil {
			return nil, errors.Join(err, c.company.leave())
		}
		return nil, err
	}
	info, err := c.Info(ctx)
	if err != nil {
		c.stop()
		return nil, err
	}
	c.mu.Lock()
	c.m.Locate(boottime.Now(), info)
	c.mu.Unlock()
	return c, nil
}

// firstBeat numbers the keep-alives so that no process uses a number that an earlier one with the same session used: by
// wall time, with room for 16 keep-alives in a millisecond, and below 2^53.
func firstBeat(now time.Time) uint64 {
	const epoch = 1767225600000 // 2026-01-01 in Unix milliseconds
	return uint64(max(now.UnixMilli()-epoch, 0)) << 4
}

// connName names a connection as the broker knows it; the zero Conn if that cannot be known, and then the broker notices
// its end by silence only.
func connName(nc *nats.Conn) machine.Conn {
	cid, err := nc.GetClientID()
	if err != nil || cid == 0 {
		return machine.Conn{}
	}
	return machine.Conn{Server: nc.ConnectedServerId(), CID: cid, Node: nc.ConnectedServerName()}
}

func newInbox(user string) string { return inboxPrefix(user) + "." + nuid.Next() + "." }
