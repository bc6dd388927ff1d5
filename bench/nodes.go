package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/bench/rig"
	"github.com/opencluster/oclocks/conf"
)

const (
	largerCluster = 9
	nodesConns    = 18 // to all nodes in turn, in both clusters
	nodesRounds   = 3  // if --rounds does not say otherwise
)

// sized is a cluster of some size with its connections.
type sized struct {
	name    string
	daemons *rig.Daemons
	conns   []*nats.Conn
}

func startSized(ctx context.Context, path string, n int) (s *sized, err error) {
	s = &sized{name: strconv.Itoa(n) + " nodes"}
	if s.daemons, err = startCluster(ctx, path, n, nil); err != nil {
		return nil, err
	}
	for i := range nodesConns {
		nc, err := s.daemons.Only(i % n)
		if err != nil {
			s.stop()
			return nil, err
		}
		s.conns = append(s.conns, nc)
	}
	return s, nil
}

func (s *sized) stop() {
	closeAll(s.conns)
	s.daemons.Stop()
}

// round measures one worker, who takes the connections in turn, and many.
func (s *sized) round(ctx context.Context, all samples) error {
	l := &locks{buckets: conf.Default().Buckets}
	turn := 0
	one, err := work(ctx, 1, func(int) error {
		turn++
		return l.pair(s.conns[turn%len(s.conns)], turn%nodesConns)
	})
	if err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	all.addTime(s.name+" p50", rig.Quantile(one.times, 0.5))
	all.addTime(s.name+" p99", rig.Quantile(one.times, 0.99))
	for _, workers := range []int{64, 256} {
		r, err := worked(ctx, s.daemons.Children(), workers, func(w int) error { return l.pair(s.conns[w%len(s.conns)], w) })
		if err != nil {
			return fmt.Errorf("%s, %d workers: %w", s.name, workers, err)
		}
		all.add(rateOf(s.name, workers), r.rate())
		all.addTime(usedBy(s.name, workers), r.each())
	}
	return nil
}

// measureNodes measures a cluster of three nodes next to one of nine.
func measureNodes(ctx context.Context) ([]table, error) {
	paths, remove, err := binaries(ctx)
	if err != nil {
		return nil, err
	}
	defer remove()
	t := table{Title: "Three nodes and nine, on one machine",
		Columns: []string{"p50", "p99", "64 workers", "256 workers", "servers, 64", "servers, 256"}}
	for _, path := range paths {
		if err := largerAndSmaller(ctx, path, &t); err != nil {
			return nil, err
		}
	}
	t.note("p50, p99: of a pair, one worker. Pairs a second, and the processor time of all servers for a pair. %d connections, to all nodes in", nodesConns)
	t.note("turn. Medians of %d rounds in which both clusters take turns; both have their daemons all the time, and an idle one is not free.", roundsOr(nodesRounds))
	return []table{t}, nil
}

func largerAndSmaller(ctx context.Context, path string, t *table) error {
	small, err := startSized(ctx, path, clusterNodes)
	if err != nil {
		return err
	}
	defer small.stop()
	large, err := startSized(ctx, path, largerCluster)
	if err != nil {
		return err
	}
	defer large.stop()
	all := samples{}
	for range roundsOr(nodesRounds) {
		for _, s := range []*sized{small, large} {
			if err := s.round(ctx, all); err != nil {
				return err
			}
		}
	}
	for _, s := range []*sized{small, large} {
		t.add(s.name, micros(all.time(s.name+" p50")), micros(all.time(s.name+" p99")),
			rate(all.median(rateOf(s.name, 64))), rate(all.median(rateOf(s.name, 256))),
			micros(all.time(usedBy(s.name, 64))), micros(all.time(usedBy(s.name, 256))))
	}
	over := func(what func(name string) string) value { return ratio(all.over(what(large.name), what(small.name))) }
	plus := func(suffix string) func(string) string { return func(name string) string { return name + suffix } }
	at := func(of func(string, int) string, workers int) func(string) string {
		return func(name string) string { return of(name, workers) }
	}
	t.add("nine / three", over(plus(" p50")), over(plus(" p99")), over(at(rateOf, 64)), over(at(rateOf, 256)), over(at(usedBy, 64)), over(at(usedBy, 256)))
	return nil
}
