package client_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/opencluster/oclocks/internal/brokertest"
)

// BenchmarkLockUnlock is one goroutine that locks and unlocks: the time is that of two round trips.
func BenchmarkLockUnlock(b *testing.B) {
	c := connect(b, brokertest.Start(b))
	m := c.Mutex("bench")
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		claim, err := m.Lock(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if err := claim.Release(ctx); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkLockUnlockParallel is many goroutines of one client with a lock each.
func BenchmarkLockUnlockParallel(b *testing.B) {
	c := connect(b, brokertest.Start(b))
	ctx := context.Background()
	var n atomic.Int64
	b.ReportAllocs()
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		m := c.Mutex(fmt.Sprintf("bench/%d", n.Add(1)))
		for pb.Next() {
			claim, err := m.Lock(ctx)
			if err != nil {
				b.Error(err)
				return
			}
			if err := claim.Release(ctx); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
