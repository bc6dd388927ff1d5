package client_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
)

// warnings gives what a client warns of.
type warnings chan string

func (w warnings) Enabled(_ context.Context, level slog.Level) bool { return level == slog.LevelWarn }
func (w warnings) WithAttrs([]slog.Attr) slog.Handler               { return w }
func (w warnings) WithGroup(string) slog.Handler                    { return w }

func (w warnings) Handle(_ context.Context, r slog.Record) error {
	select {
	case w <- r.Message:
	default:
	}
	return nil
}

// A lock in the shape of sync.Mutex has no error to tell of a quota that is full for a while: it waits for room.
func TestLockerWaitsForRoom(t *testing.T) {
	d := brokertest.Start(t, brokertest.WithZones(conf.Zone{Name: "default", Open: true, Quota: conf.Quota{Waiters: 1}}))
	told := make(warnings, 16)
	holder, waiter, late := connect(t, d), connect(t, d), connect(t, d, client.WithLogger(slog.New(told)))
	claim := lockOf(t, holder.Mutex("x"))
	got := make(chan error, 1)
	go func() {
		second, err := waiter.Mutex("x").Lock(within(t))
		if err == nil {
			err = second.Release(within(t))
		}
		got <- err
	}()
	waitFor(t, "the queue to be full", waiting(t, holder, "x", 1))

	mutex := late.Mutex("x").Locker()
	locked := make(chan bool)
	go func() {
		mutex.Lock()
		close(locked)
	}()
	select {
	case <-told:
	case <-locked:
		t.Fatal("locked, though it is held")
	case <-time.After(patience):
		t.Fatal("nothing was told of the quota")
	}
	if mutex.TryLock() {
		t.Error("locked twice")
	}
	must(t, claim.Release(within(t)))
	must(t, <-got)
	select {
	case <-locked:
		mutex.Unlock()
	case <-time.After(patience):
		t.Fatal("never locked")
	}
}

// TryLock has no context, so it must end by itself when nobody answers.
func TestLockerTriesForAWhileOnly(t *testing.T) {
	d := brokertest.Start(t)
	p := brokertest.NewProxy(t, d.URL())
	c := connectURL(t, p.URL(), client.WithTimeout(100*time.Millisecond))
	p.Stall(true)
	if c.Mutex("x").Locker().TryLock() {
		t.Error("locked by nobody")
	}
	p.Stall(false)
	waitFor(t, "the broker to answer again", func() bool {
		m := c.Mutex("x").Locker()
		locked := m.TryLock()
		if locked {
			m.Unlock()
		}
		return locked
	})
}
