package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/internal/check"
)

// childVariable is the environment variable that makes a process of this program a client process: its role, as JSON.
const childVariable = "OCLOCKS_CHAOS_CHILD"

// Child runs the process as a client process if that is what it was started for, and says so. Call it first in main, or in TestMain.
func Child() (code int, child bool) {
	text := os.Getenv(childVariable)
	if text == "" {
		return 0, false
	}
	var r role
	err := json.Unmarshal([]byte(text), &r)
	switch {
	case err != nil:
	case r.Jepsen != nil:
		err = r.Jepsen.work()
	default:
		err = r.work()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "client process:", err)
		return 1, true
	}
	return 0, true
}

// role is what a client process is to do.
type role struct {
	Process string   `json:"process"` // its name in the history is the beginning of its clients' names
	Seed    uint64   `json:"seed"`
	URLs    []string `json:"urls"`
	Zones   []zone   `json:"zones"`
	Tape    string   `json:"tape"`  // its recording
	Pace    float64  `json:"pace"`  // 1: as fast as it is meant to be; 2: half as fast
	Crowd   int      `json:"crowd"` // workers that share a client, besides those that have one each

	Jepsen *jepsenWorker `json:"jepsen,omitempty"`
}

// zone is one that clients work in.
type zone struct {
	Name  string `json:"name"`
	Creds string `json:"creds,omitempty"` // file; "" for the open zone
	User  string `json:"user"`            // the caller's own token in subjects
}

// reach bounds how long a client tries to connect: everything may be cut off from it.
const reach = 30 * time.Second

// names is how many locks there are of each kind, in each zone.
const names = 8

// actor is one client of the history: it does one kind of thing again and again.
type actor struct {
	*role
	zone
	id   string // in the history, and the text of the holder
	rec  *recorder
	rng  *rand.Rand
	next int // requests

	hurry bool  // to have it released at once; its locks are its own, so that it waits for nobody
	drum  *drum // of the crowd that it shares its client with

	mu      sync.Mutex
	pending string // acquire that the library is asked for
	wanted  string // its lock
}

// work has clients of all kinds work until the process is told to stop, or is killed.
func (r *role) work() error {
	rec, err := newRecorder(r.Tape)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var all sync.WaitGroup
	failed := make(chan error, actors+1)
	begin := func(a *actor, work func() error) {
		all.Go(func() {
			if err := work(); err != nil && ctx.Err() == nil {
				failed <- fmt.Errorf("%s: %w", a.id, err)
			}
		})
	}
	for i, kind := range []func(*actor, context.Context) error{
		alone((*actor).mutex), alone((*actor).rwmutex), alone((*actor).semaphore), (*actor).plain, (*actor).bystander,
	} {
		a := r.actor(rec, i)
		begin(a, func() error { return kind(a, ctx) })
	}
	if crowd := r.crowd(rec); len(crowd) > 0 {
		begin(crowd[0], func() error { return claims(ctx, crowd, (*actor).mutex, (*actor).rwmutex, (*actor).semaphore) })
	}
	ended := make(chan struct{})
	go func() { all.Wait(); close(ended) }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			rec.mark()
			if err := rec.failed(); err != nil {
				return err
			}
		case err := <-failed:
			return err
		case <-ended:
			return rec.failed()
		}
	}
}

// alone has a worker take locks with a client of its own.
func alone(choose choice) func(*actor, context.Context) error {
	return func(a *actor, ctx context.Context) error { return claims(ctx, []*actor{a}, choose) }
}

// actor makes the process's client of a number.
func (r *role) actor(rec *recorder, i int) *actor {
	rng := rand.New(rand.NewPCG(r.Seed, uint64(i))) //nolint:gosec // a test's choice
	return &actor{role: r, zone: r.Zones[rng.IntN(len(r.Zones))], rec: rec, rng: rng, id: actorName(r.Process, i)}
}

// servers are the addresses in an order of this client's own.
func (a *actor) servers() string {
	list := make([]string, len(a.URLs))
	for i, at := range a.rng.Perm(len(a.URLs)) {
		list[i] = a.URLs[at]
	}
	return strings.Join(list, ",")
}

// connect connects through our client library, for some workers, and tries again as long as it must.
func (a *actor) connect(ctx context.Context, workers []*actor, opts ...client.Option) (*client.Client, error) {
	opts = append(opts, client.WithName(a.id), client.WithNATSOptions(nats.DontRandomize()),
		client.WithLogger(slog.New(&overhear{slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}), workers})))
	if a.Creds != "" {
		opts = append(opts, client.WithCredentials(a.Creds))
	}
	for {
		one, cancel := context.WithTimeout(ctx, reach)
		c, err := client.Connect(one, a.servers(), opts...)
		cancel()
		if err == nil || ctx.Err() != nil {
			return c, err
		}
		if errors.Is(err, client.ErrDenied) {
			return nil, err
		}
		a.pause(ctx, 100*time.Millisecond)
	}
}

// pause waits: on average this long, times the pace.
func (a *actor) pause(ctx context.Context, mean time.Duration) {
	timer := time.NewTimer(time.Duration(a.rng.ExpFloat64() * float64(mean) * a.Pace))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// between chooses a duration.
func (a *actor) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(a.rng.Int64N(int64(hi-lo)))
}

// chance is true so often.
func (a *actor) chance(p float64) bool { return a.rng.Float64() < p }

// lock is one of the names of a kind.
func (a *actor) lock(kind string) string {
	if a.hurry {
		kind += "-" + a.id
	}
	return fmt.Sprintf("%s-%d", kind, a.rng.IntN(names))
}

// request names the next request of this client.
func (a *actor) request() string {
	a.next++
	return fmt.Sprint(a.next)
}

// tell writes an event of this client.
func (a *actor) tell(e check.Event) int64 {
	e.Client, e.Zone = a.id, a.zone.Name
	return a.rec.add(e)
}

// What logs of clients and daemons say of lanes and direct links (ways.go counts it).
const (
	laneOpened = "connected to a node that is often asked"
	laneBroken = "the connection to a node that is often asked is broken"
	linkUp     = "a direct link is up"
	linkDown   = "a direct link is down"
)

// overhear hears from the library's log that an acquire goes on as a new request: its session was over, or its grant before the library
// had heard of it. The broker then has two requests for what is one to the caller.
type overhear struct {
	slog.Handler
	workers []*actor // that the client is for
}

// Handle implements slog.Handler.
func (o *overhear) Handle(ctx context.Context, r slog.Record) error {
	var name, holder string
	r.Attrs(func(attr slog.Attr) bool {
		switch attr.Key {
		case "anew":
			name = attr.Value.String()
		case "holder":
			holder = attr.Value.String()
		}
		return true
	})
	for _, a := range o.workers {
		if name != "" && a.id == holder {
			a.anew(name)
		}
	}
	if r.Level < slog.LevelError && r.Message != laneOpened && r.Message != laneBroken {
		return nil
	}
	return o.Handler.Handle(ctx, r)
}

// anew hears that an acquire goes on as a new request.
func (a *actor) anew(name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.pending != "" && a.wanted == name {
		a.tell(check.Event{Kind: check.Anew, Request: a.pending})
	}
}

// await sets the acquire that the library is asked for, "" for none.
func (a *actor) await(request, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pending, a.wanted = request, name
}
