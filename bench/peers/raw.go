package main

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/bench/rig"
)

// rawFigures are those of plain requests to another node, the yardstick; lock is one request, a pair is two.
func rawFigures(ctx context.Context, p *rig.Plain) (other, same figures, err error) {
	other, same = figures{}, figures{}
	var conns []*nats.Conn
	defer func() {
		for _, nc := range conns {
			nc.Close()
		}
	}()
	for i := range connections {
		nc, err := nats.Connect(p.URL(i % 3))
		if err != nil {
			return nil, nil, fmt.Errorf("connect to a plain NATS server: %w", err)
		}
		conns = append(conns, nc)
	}
	for away, f := range []figures{same, other} {
		var times []time.Duration
		for begin := time.Now(); time.Since(begin) < measured/2; {
			at := time.Now()
			if err := rig.Echo(conns[away], 0); err != nil {
				return nil, nil, err
			}
			times = append(times, time.Since(at))
		}
		f[lockP50], f[lockP99] = micros(rig.Quantile(times, 0.5)), micros(rig.Quantile(times, 0.99))
		for n, name := range map[int]string{64: pairs64, 256: pairs256} {
			f[name], err = repeated(n, func(i int) error {
				for range 2 {
					if err := rig.Echo(conns[i%connections], (i+away)%3); err != nil {
						return err
					}
				}
				return ctx.Err()
			})
			if err != nil {
				return nil, nil, err
			}
		}
	}
	return other, same, nil
}
