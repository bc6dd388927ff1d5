package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/bench/rig"
	"github.com/opencluster/oclocks/conf"
)

const (
	manyZones   = 999 // with users, beside the open one
	zonesGoal   = 1.2
	zoneWorkers = 64
	zonesRounds = 3 // if --rounds does not say otherwise
)

// zoned is a cluster and a connection for each worker's turn.
type zoned struct {
	name    string
	daemons *rig.Daemons
	conns   []*nats.Conn
	locks   []*locks // by connection
}

// startZoned starts a cluster, and connects as often as there are zones at the most: to one zone each, or to the open one.
func startZoned(ctx context.Context, path, name string, zones int) (z *zoned, err error) {
	z = &zoned{name: name}
	if z.daemons, err = rig.StartCluster(ctx, path, clusterNodes, rig.Options{Args: flags.args, Zones: zones, Keep: flags.keep}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			z.stop()
		}
	}()
	first, err := z.daemons.Only(0)
	if err != nil {
		return nil, err
	}
	z.conns, z.locks = append(z.conns, first), append(z.locks, &locks{})
	for i := range manyZones {
		nc, user, err := z.connect(i, zones)
		if err != nil {
			return nil, err
		}
		z.conns, z.locks = append(z.conns, nc), append(z.locks, &locks{user: user})
	}
	for _, l := range z.locks {
		l.buckets = conf.Default().Buckets
	}
	return z, nil
}

func (z *zoned) connect(i, zones int) (nc *nats.Conn, user string, err error) {
	if zones > 0 {
		return z.daemons.InZone(i%zones, i%clusterNodes)
	}
	nc, err = z.daemons.Only(i % clusterNodes)
	return nc, "", err
}

func (z *zoned) stop() {
	closeAll(z.conns)
	z.daemons.Stop()
}

// round measures one worker, and many, who take the connections in turn.
func (z *zoned) round(ctx context.Context, s samples) error {
	next := make([]int, zoneWorkers)
	pair := func(w, step int) error {
		at := (w + next[w]) % len(z.conns)
		next[w] += step
		return z.locks[at].pair(z.conns[at], w)
	}
	one, err := work(ctx, 1, func(w int) error { return pair(w, 1) })
	if err != nil {
		return fmt.Errorf("%s: %w", z.name, err)
	}
	clear(next)
	many, err := worked(ctx, z.daemons.Children(), zoneWorkers, func(w int) error { return pair(w, zoneWorkers) })
	if err != nil {
		return fmt.Errorf("%s: %w", z.name, err)
	}
	s.addTime(z.name+" p50", rig.Quantile(one.times, 0.5))
	s.addTime(z.name+" p99", rig.Quantile(one.times, 0.99))
	s.add(z.name+" rate", many.rate())
	s.addTime(z.name+" used", many.each())
	return nil
}

// measureZones measures what a pair costs in a cluster of many zones, next to one that has a single zone.
func measureZones(ctx context.Context) (_ []table, err error) {
	paths, remove, err := binaries(ctx)
	if err != nil {
		return nil, err
	}
	defer remove()
	t := table{Title: "Three nodes: a pair in a cluster of many zones", Columns: []string{"p50", "p99", "pairs", "servers"}}
	for _, path := range paths {
		if err := besideOne(ctx, path, &t); err != nil {
			return nil, err
		}
	}
	t.note("p50, p99: of a pair, one worker; pairs, servers (processor time of all three for a pair): %d workers. The same number of", zoneWorkers)
	t.note("connections in both, %d, which the workers take in turn: all in one zone, or each in a zone of its own. Medians of %d rounds in", manyZones+1, roundsOr(zonesRounds))
	t.note("which both clusters take turns. Goal: at most %.1f in p50 and servers.", zonesGoal)
	return []table{t}, nil
}

func besideOne(ctx context.Context, path string, t *table) error {
	one, err := startZoned(ctx, path, "1 zone", 0)
	if err != nil {
		return err
	}
	defer one.stop()
	many, err := startZoned(ctx, path, strconv.Itoa(manyZones+1)+" zones", manyZones)
	if err != nil {
		return err
	}
	defer many.stop()
	s := samples{}
	for range roundsOr(zonesRounds) {
		if err := errors.Join(one.round(ctx, s), many.round(ctx, s)); err != nil {
			return err
		}
	}
	for _, z := range []*zoned{one, many} {
		t.add(z.name, micros(s.time(z.name+" p50")), micros(s.time(z.name+" p99")), rate(s.median(z.name+" rate")), micros(s.time(z.name+" used")))
	}
	over := func(what string) value { return ratio(s.over(many.name+what, one.name+what)) }
	t.add("many / one", over(" p50"), over(" p99"), over(" rate"), over(" used"))
	return nil
}
