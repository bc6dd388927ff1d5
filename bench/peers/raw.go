package main

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/bench/rig"
)

// yardstick is connections to plain NATS servers. What is measured of a peer takes turns with plain requests, since the machine changes its
// speed within seconds.
type yardstick struct{ conns []*nats.Conn }

func newYardstick(p *rig.Plain) (*yardstick, error) {
	y := &yardstick{}
	for i := range connections {
		nc, err := nats.Connect(p.URL(i % 3))
		if err != nil {
			y.Close()
			return nil, fmt.Errorf("connect to a plain NATS server: %w", err)
		}
		y.conns = append(y.conns, nc)
	}
	return y, nil
}

func (y *yardstick) Close() {
	for _, nc := range y.conns {
		nc.Close()
	}
}

// request is one, to a responder at the own node (away 0) or at another one (1).
func (y *yardstick) request(away int) error { return rig.Echo(y.conns[away], 0) }

// pair is two requests by a worker.
func (y *yardstick) pair(ctx context.Context, worker, away int) error {
	for range 2 {
		if err := rig.Echo(y.conns[worker%connections], (worker+away)%3); err != nil {
			return err
		}
	}
	return ctx.Err()
}
