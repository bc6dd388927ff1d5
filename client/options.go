package client

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/subjects"
)

// Defaults and limits of a client.
const (
	defaultTimeout = 2 * time.Second
	maxCalls       = 65536 // unfinished requests at a time; beyond, a request fails with ErrQuota
)

// Option is a setting of Connect.
type Option func(*options)

type options struct {
	credentials string
	context     string
	conn        *nats.Conn
	nats        []nats.Option
	name        string
	lease       time.Duration
	secret      string
	location    string
	log         *slog.Logger
	timeout     time.Duration
	nearest     bool
	road        *road

	oneConnection bool
	laneBusy      int           // machine.Config.Busy; 0: its default
	dialed        *nats.Options // of the connection that the client has made
}

func newOptions(opts []Option) options {
	o := options{timeout: defaultTimeout, log: slog.New(slog.DiscardHandler), road: &road{}}
	for _, opt := range opts {
		opt(&o)
	}
	if o.name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown"
		}
		o.name = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	return o
}

// WithCredentials connects with a .creds file, in place of NATS_CREDS and of the NATS context's.
func WithCredentials(path string) Option { return func(o *options) { o.credentials = path } }

// WithContext connects with a NATS context (those of the nats CLI), in place of NATS_CONTEXT and the selected one.
func WithContext(name string) Option { return func(o *options) { o.context = name } }

// WithConn uses a connection of the caller's, and no other, which stays open when the client is closed. Permission errors of the NATS
// server go to that connection's own error handler, so a request that they hit ends only with its context. The keep-alives of clients that
// share a connection share messages.
func WithConn(nc *nats.Conn) Option { return func(o *options) { o.conn = nc } }

// WithNATSOptions adds options to those with which the client connects.
func WithNATSOptions(opts ...nats.Option) Option {
	return func(o *options) { o.nats = append(o.nats, opts...) }
}

// WithName sets the text by which people recognise this client as holder: 256 bytes at most, by default host/pid.
func WithName(text string) Option { return func(o *options) { o.name = text } }

// WithLease asks for a lease of the session other than the broker's default (10 s): at least 100 ms, and not more than
// the broker's max_lease. A shorter one frees the locks of a dead process sooner and needs a steadier network.
func WithLease(d time.Duration) Option { return func(o *options) { o.lease = d } }

// WithSecret comes back as an earlier session (SessionInfo.Secret), to keep what it holds.
func WithSecret(secret string) Option { return func(o *options) { o.secret = secret } }

// WithLocation tells the cluster where the client is.
func WithLocation(location string) Option { return func(o *options) { o.location = location } }

// WithNearest connects to the nearest of the servers, by the round trip to each of those that Connect is given, and after a
// broken connection to the nearest of all that the cluster has told. Without it the choice is random, which spreads clients
// evenly.
func WithNearest() Option { return func(o *options) { o.nearest = true } }

// WithOneConnection sends everything over one connection. Without it, a client that asks for many locks connects to their nodes
// as well, 16 at most, so that each request takes the shortest way; such a connection is closed when it is idle, and nothing
// depends on it. There is one connection anyway over WebSockets, with WithConn, and with nats.IgnoreDiscoveredServers.
func WithOneConnection() Option { return func(o *options) { o.oneConnection = true } }

// WithLogger logs what the client does on its own behalf: reconnects, lost locks. Without it nothing is logged.
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// WithTimeout sets how long one request's round trip may take before it is repeated: 2 s by default. How long a method
// tries on the whole is its context's business.
func WithTimeout(d time.Duration) Option {
	return func(o *options) {
		if d > 0 {
			o.timeout = d
		}
	}
}

// LockOption is a setting of one Mutex, RWMutex or Semaphore.
type LockOption func(*lockOptions)

type lockOptions struct {
	req subjects.Request // what each acquire begins with
	err error            // what was wrong with the options; told by the first use
}

// WithTTL limits how long the lock may be held; 0 is no limit. The limit of a static lock is renewed by its claim at half
// of it; a connection lock's limit ends it, for the client at 3/4 of it.
func WithTTL(d time.Duration) LockOption {
	return func(o *lockOptions) { o.req.TTL, o.req.Has = d, o.req.Has|subjects.HasTTL }
}

// WithStatic makes locks that do not end with the session, but when they are released or their time limit is over (60 s
// unless WithTTL says otherwise).
func WithStatic() LockOption { return func(o *lockOptions) { o.req.Kind = subjects.Static } }

// WithGrace sets how long the lock survives the end of its connection: by default the session's lease. With less, a
// connection that breaks may give the lock to somebody else before its holder has noticed.
func WithGrace(d time.Duration) LockOption {
	return func(o *lockOptions) { o.req.Grace, o.req.Has = d, o.req.Has|subjects.HasGrace }
}

// WithHolder sets the text for people of this lock, in place of the client's name: 256 bytes at most.
func WithHolder(text string) LockOption { return func(o *lockOptions) { o.req.Holder = text } }

// WithData attaches a value to the hold, as JSON of 16 KiB at most, that everybody sees who asks for the lock.
func WithData(v any) LockOption {
	return func(o *lockOptions) {
		data, err := json.Marshal(v)
		if err != nil {
			o.err = fmt.Errorf("encode the data of a lock: %w", err)
			return
		}
		o.req.Data = data
	}
}

// WithDrain says how a waiting writer treats the readers that come after it. quiet is for subjects.Timed.
func WithDrain(drain subjects.Drain, quiet time.Duration) LockOption {
	return func(o *lockOptions) { o.req.Drain, o.req.Quiet = drain, quiet }
}

// WithAcks says how many copies of a grant there must be before it is answered.
func WithAcks(acks subjects.Acks) LockOption { return func(o *lockOptions) { o.req.Acks = acks } }

func (c *Client) lockOptions(name string, opts []LockOption) lockOptions {
	var o lockOptions
	o.req.Op, o.req.Name, o.req.Holder = subjects.OpAcquire, name, c.opts.name
	for _, opt := range opts {
		opt(&o)
	}
	return o
}
