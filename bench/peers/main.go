// Command peers measures oclocks next to other things that give locks, each next to plain NATS in the same round: one worker,
// many workers with a lock of their own each, ten on one lock, a thousand who wait, and the end of the node that leads.
//
//	make bench-peers                          # all that are there, three rounds, and the page of the figures
//	cd bench/peers && go run . --list         # what there is, and what is missing
//	cd bench/peers && go run . --peers redis,etcd --rounds 1
//
// It is a module of its own: the clients of others are dependencies that nobody else needs. What it finds goes into a JSON file
// if --into names one; --append adds rounds to those that the file has. What makes a page of it is bench/page.
//
// Read peer.go (what a peer is) and workload.go first, then gap.go, raw.go, result.go and one file for each peer: oclocks.go,
// redis.go, redsync.go, postgres.go, dsync.go, kv.go (with streams.go), etcd.go, zookeeper.go.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/opencluster/oclocks/bench/rig"
	"github.com/redis/go-redis/v9"
)

// options are what is measured and where it goes.
type options struct {
	keys   []string
	rounds int
	into   string
	append bool
	noGap  bool
}

func main() {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case rig.PlainCommand:
			exit(rig.ServePlain(os.Args[2:]))
		case dsyncCommand:
			exit(serveDsync(os.Args[2:]))
		case streamsCommand:
			exit(serveStreams(os.Args[2:]))
		}
	}
	redis.SetLogger(quietRedis{})
	var o options
	only := flag.String("peers", "", "some of "+peerNames()+" (default all)")
	list := flag.Bool("list", false, "tell what there is and what is missing")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds in which all take turns")
	flag.StringVar(&o.into, "into", "", "JSON file for the figures")
	flag.BoolVar(&o.append, "append", false, "add to the rounds that the file has")
	flag.BoolVar(&o.noGap, "no-gap", false, "without the end of the leader")
	flag.StringVar(&daemonPath, "daemon", "", "binary of the daemon (default: this tree's, built)")
	flag.Parse()
	o.keys = strings.FieldsFunc(*only, func(r rune) bool { return r == ',' || r == ' ' })
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if *list {
		tellAll(ctx)
		exit(nil)
	}
	exit(run(ctx, o))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func tellAll(ctx context.Context) {
	for _, p := range peers {
		if err := p.lacking(); err != nil {
			fmt.Printf("%-13s %s: SKIPPED: %v\n", p.Key, p.Name, err)
			continue
		}
		fmt.Printf("%-13s %s: %s\n", p.Key, p.Name, p.version(ctx))
	}
}

func run(ctx context.Context, o options) error {
	for _, k := range o.keys {
		if !known(k) {
			return fmt.Errorf("there is no peer %q: expected some of %s", k, peerNames())
		}
	}
	r, rest, err := load(o.into)
	if err != nil {
		return err
	}
	plain, err := rig.StartPlain(ctx)
	if err != nil {
		return err
	}
	defer plain.Stop()
	fmt.Println(machine())
	for n := range o.rounds {
		for _, p := range peers {
			if len(o.keys) > 0 && !slices.Contains(o.keys, p.Key) {
				continue
			}
			x := r.of(p)
			if n == 0 && !o.append {
				x.Rounds = nil
			}
			if err := turn(ctx, p, x, plain, o); err != nil {
				return err
			}
			if o.into == "" {
				continue
			}
			if err := r.save(o.into, rest); err != nil {
				return err
			}
		}
	}
	return nil
}

// turn is one peer in one round.
func turn(ctx context.Context, p peer, x *peerResult, plain *rig.Plain, o options) error {
	x.Skipped = ""
	if err := p.lacking(); err != nil {
		x.Skipped = err.Error()
		fmt.Printf("%s: SKIPPED: %v\n", p.Name, err)
		return nil
	}
	x.Version = p.version(ctx)
	y, err := newYardstick(plain)
	if err != nil {
		return err
	}
	defer y.Close()
	now := round{When: now(), Raw: figures{}, Same: figures{}, Peer: figures{}}
	err = with(ctx, p, func(s service) error { return measure(ctx, s, y, &now) })
	if err == nil && !o.noGap {
		err = with(ctx, p, func(s service) error { return endOfLeader(ctx, s, now.Peer) })
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		now.Error = err.Error()
	}
	x.Rounds = append(x.Rounds, now)
	now.tell(p.Name)
	return nil
}

// with starts a peer, in a directory of its own, for as long as do goes on.
func with(ctx context.Context, p peer, do func(s service) error) error {
	dir, err := os.MkdirTemp("", "oclocks-peer")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) // it is in the temporary directory
	s, err := p.start(ctx, dir)
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	defer s.Stop()
	return do(s)
}

func (r *round) tell(name string) {
	f := r.Peer
	end := fmt.Sprintf("%.0f / %.0f ms", f[gap], f[gapOfOne])
	if f[neverBack] > 0 {
		end = "stops"
	}
	fmt.Printf("%-36s lock %5.0f / %6.0f us (%.2f x), pairs %6.0f / %6.0f (%.2f, %.2f x), hand-overs %5.0f (%.2f), drained %6.0f ms, gap %s, overlaps %.0f %s\n",
		name, f[lockP50], f[lockP99], f[lockP50]/r.Raw[lockP50], f[pairs64], f[pairs256], f[pairs64]/r.Raw[pairs64],
		f[pairs256]/r.Raw[pairs256], f[handOver], f[unfair], f[drained], end, f[overlaps], r.Error)
}
