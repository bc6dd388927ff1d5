package main

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// tried counts who has found a lock held, for peers that have no queue.
type tried struct {
	mu    sync.Mutex
	names map[string]int
}

func (t *tried) found(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.names == nil {
		t.names = make(map[string]int)
	}
	t.names[name]++
}

// Waiting is how many have found a lock held so far.
func (t *tried) Waiting(_ context.Context, name string) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.names[name], nil
}

// poll tries again and again, with the pause of redsync between: 50 to 250 ms.
func (t *tried) poll(ctx context.Context, name string, try func() (bool, error)) error {
	for n := 0; ; n++ {
		if done, err := try(); done || err != nil {
			return err
		}
		if n == 0 {
			t.found(name)
		}
		if err := rest(ctx, redsyncPause()); err != nil {
			return err
		}
	}
}

// quietLog takes what clients of others tell of servers that are gone.
type quietLog struct{}

func (quietLog) Printf(string, ...any) {}

// quietRedis is the same in go-redis' shape.
type quietRedis struct{}

func (quietRedis) Printf(context.Context, string, ...any) {}

// redsyncPause is redsync's own default.
func redsyncPause() time.Duration { return between(50*time.Millisecond, 250*time.Millisecond) }

func between(lo, hi time.Duration) time.Duration { return lo + rand.N(hi-lo) }

func rest(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
