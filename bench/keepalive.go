package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/bench/rig"
	"github.com/opencluster/oclocks/conf"
)

const (
	keepGoal = 0.1 // of a processor
	keepLook = 10 * time.Second
)

// keepLeases are the leases of the sessions.
var keepLeases = [2]struct {
	part  string
	lease time.Duration
}{{"default", conf.Default().SessionLease}, {"longest", conf.Default().MaxLease}}

// Parts of a look, all with the same sessions.
const (
	keepSingle  = "single"
	keepBundles = "bundles"
	keepIdle    = "idle"
)

// wantedOf says whether one of several parts is to be measured: all are if none of them was asked for.
func wantedOf(part string, all ...string) bool {
	return slices.Contains(flags.parts, part) || !slices.ContainsFunc(all, func(p string) bool { return slices.Contains(flags.parts, p) })
}

func keepWanted(part string) bool { return wantedOf(part, keepSingle, keepBundles, keepIdle) }

// measureKeepAlives measures what it costs to keep very many sessions alive, next to as many plain requests.
func measureKeepAlives(ctx context.Context) ([]table, error) {
	paths, remove, err := binaries(ctx)
	if err != nil {
		return nil, err
	}
	defer remove()
	t := table{Title: fmt.Sprintf("Three nodes: %d sessions are kept alive", manySessions),
		Columns: []string{"a second", "of a processor", "of it NATS alone", "each", "/ NATS"}}
	for _, x := range keepLeases {
		lease := x.lease
		if !wantedOf(x.part, keepLeases[0].part, keepLeases[1].part) {
			continue
		}
		plain, err := plainBeats(ctx, lease)
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			if err := keptAlive(ctx, path, lease, plain, &t); err != nil {
				return nil, fmt.Errorf("lease %v: %w", lease, err)
			}
		}
	}
	t.note("Processor time of all three daemons. Each session has a lease of its own, and a keep-alive each half of it, as the Go client sends it:")
	t.note("to the node that has given its lock, or, where it has none, to all. They share %d connections, evenly over all nodes and over time.", sessionConns)
	t.note("In bundles: at %d moments in half a lease each connection sends what is due by then, to each node in as few messages as it fits into.", keepSlots)
	t.note("NATS alone: as many requests of that size, in the same time, and their replies, at three plain servers, two thirds of them to another one. Goal: %.2f.", keepGoal)
	return []table{t}, nil
}

// keepAlives is how many keep-alives there are in the time of one look.
func keepAlives(lease time.Duration) int { return int(keepLook * manySessions / (lease / 2)) }

// plainBeats is the processor time of three plain servers for one request in the place of a keep-alive.
func plainBeats(ctx context.Context, lease time.Duration) (each time.Duration, err error) {
	plain, err := rig.StartPlain(ctx)
	if err != nil {
		return 0, err
	}
	defer plain.Stop()
	var conns []*nats.Conn
	defer func() { closeAll(conns) }()
	for i := range sessionConns {
		nc, err := nats.Connect(plain.URL(i % clusterNodes))
		if err != nil {
			return 0, err
		}
		conns = append(conns, nc)
		if _, err := nc.Subscribe(inboxOf(i), func(*nats.Msg) {}); err != nil {
			return 0, err
		}
	}
	body := make([]byte, len(`{"session":"","beat":1}`)+sessionTokenLen)
	before, err := rig.Processors(plain.Servers)
	if err != nil {
		return 0, err
	}
	n := keepAlives(lease)
	if err := pace(ctx, n, keepLook, func(i int) error {
		return conns[i%sessionConns].PublishRequest(rig.EchoSubject(i/sessionConns%clusterNodes), inboxOf(i%sessionConns), body)
	}); err != nil {
		return 0, err
	}
	after, err := rig.Processors(plain.Servers)
	return (after - before) / time.Duration(n), err
}

// sessionTokenLen is about how long a session's token is.
const sessionTokenLen = 100

func inboxOf(i int) string { return "_INBOX.bench." + strconv.Itoa(i) }

// keptAlive measures sessions with a lock each, and, for the default lease, sessions without.
func keptAlive(ctx context.Context, path string, lease, plain time.Duration, t *table) error {
	d, err := startCluster(ctx, path, clusterNodes, nil)
	if err != nil {
		return err
	}
	defer d.Stop()
	all, err := connectSessions(d, lease)
	if err != nil {
		return err
	}
	defer all.close()
	if err := all.paced(ctx, manySessions, keepLook, all.open); err != nil {
		return err
	}
	if err := all.paced(ctx, manySessions, min(lease/2, keepLook), all.acquire); err != nil {
		return err
	}
	look := func(name string, some func(n int, period time.Duration) error) error {
		before, err := rig.Processors(d.Children())
		if err != nil {
			return err
		}
		begin := time.Now()
		for left := keepAlives(lease); left > 0; left -= manySessions {
			n := min(left, manySessions)
			if err := some(n, time.Duration(n)*(lease/2)/manySessions); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		elapsed := time.Since(begin)
		after, err := rig.Processors(d.Children())
		n := keepAlives(lease)
		each := (after - before) / time.Duration(n)
		t.add(fmt.Sprintf("%s: %s, lease %v", d.Label, name, lease), rate(float64(n)/elapsed.Seconds()),
			share(float64(after-before)/float64(elapsed)), share(float64(plain)*float64(n)/float64(elapsed)), micros(each), overTime(each, plain))
		return err
	}
	single := func(ask func(i int) error) func(n int, period time.Duration) error {
		return func(n int, period time.Duration) error { return all.paced(ctx, n, period, ask) }
	}
	if keepWanted(keepSingle) {
		if err := look("each has a lock", single(all.keep)); err != nil {
			return err
		}
	}
	if keepWanted(keepBundles) {
		if err := look("each has a lock, in bundles", func(n int, period time.Duration) error { return all.pacedBundles(ctx, n, period) }); err != nil {
			return err
		}
	}
	if lease != conf.Default().SessionLease || !keepWanted(keepIdle) {
		return nil
	}
	if err := all.paced(ctx, manySessions, lease/2, all.release); err != nil {
		return err
	}
	return look("none has a lock", single(all.keepEverywhere))
}
