package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/opencluster/oclocks/broker"
	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/subjects"
)

// exampleBroker is a broker for the examples; stop ends it.
func exampleBroker() (url string, stop func()) {
	silent := slog.New(slog.NewTextHandler(io.Discard, nil))
	d, err := broker.Start(context.Background(), broker.Config{Settings: brokertest.Settings(), Logger: silent})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	return d.URL(), func() {
		if err := d.Stop(context.Background()); err != nil {
			fmt.Println(err)
		}
	}
}

func Example() {
	url, stop := exampleBroker()
	defer stop()
	ctx := context.Background()

	c, err := client.Connect(ctx, url) // "" connects as the nats CLI would
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(ctx)

	m := c.Mutex("orders/4711")
	claim, err := m.Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Unlock(ctx)
	fmt.Println(claim.State(), claim.Token() > 0)
	// Output: held true
}

func ExampleMutex_TryLock() {
	url, stop := exampleBroker()
	defer stop()
	ctx := context.Background()
	c, err := client.Connect(ctx, url, client.WithName("the first"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(ctx)
	if _, err := c.Mutex("orders/4711").Lock(ctx); err != nil {
		fmt.Println(err)
		return
	}

	_, err = c.Mutex("orders/4711").TryLock(ctx)
	var held *client.HeldError
	if errors.As(err, &held) {
		fmt.Printf("held by %s, %d waiting\n", held.Holder, held.Queue)
	}
	// Output: held by the first, 0 waiting
}

func ExampleSemaphore() {
	url, stop := exampleBroker()
	defer stop()
	ctx := context.Background()
	c, err := client.Connect(ctx, url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(ctx)

	licences := c.Semaphore("licences", 3)
	two, err := licences.Acquire(ctx, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = licences.TryAcquire(ctx, 2)
	fmt.Println(errors.Is(err, client.ErrHeld))
	fmt.Println(two.Release(ctx))
	// Output:
	// true
	// <nil>
}

// The work under a lock ends when the lock is lost.
func ExampleClaim_Context() {
	work := func(ctx context.Context, token uint64) error { return ctx.Err() }
	underLock := func(ctx context.Context, m *client.Mutex) (err error) {
		claim, err := m.Lock(ctx)
		if err != nil {
			return err
		}
		// Not ctx: the lock is to be unlocked even if ctx is over.
		defer func() { err = errors.Join(err, m.Unlock(context.WithoutCancel(ctx))) }()
		ctx, cancel := claim.Context(ctx)
		defer cancel()
		if err = work(ctx, claim.Token()); err != nil {
			return errors.Join(err, context.Cause(ctx)) // the cause says why the lock was lost
		}
		return nil
	}
	_ = underLock
}

// Readers share the lock; a writer that waits lets those pass who come within its quiet time.
func ExampleRWMutex() {
	read := func(ctx context.Context, c *client.Client) error {
		rw := c.RWMutex("config", client.WithDrain(subjects.Timed, 5*time.Second))
		claim, err := rw.RLock(ctx)
		if err != nil {
			return err
		}
		defer claim.Release(ctx)
		// …
		return claim.Err()
	}
	_ = read
}

// Code that knows only package sync.
func ExampleRWMutex_Std() {
	url, stop := exampleBroker()
	defer stop()
	c, err := client.Connect(context.Background(), url)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close(context.Background())

	rw := c.RWMutex("config").Std()
	rw.RLock()
	fmt.Println(rw.TryRLock(), rw.TryLock())
	rw.RUnlock()
	rw.RUnlock()
	fmt.Println(rw.TryLock())
	rw.Unlock()
	// Output:
	// true false
	// true
}

// A lock that outlives the process: the key releases it later, from anywhere.
func ExampleClient_Acquire() {
	takeForAnHour := func(ctx context.Context, c *client.Client) (key uint64, err error) {
		grant, err := c.Acquire(ctx, &subjects.Request{
			Name: "maintenance", Kind: subjects.Static, TTL: time.Hour, Has: subjects.HasTTL, Holder: "nightly job",
		})
		if err != nil {
			return 0, err
		}
		return grant.Key, nil
	}
	giveBack := func(ctx context.Context, c *client.Client, key uint64) error {
		_, err := c.Release(ctx, "maintenance", key, "done")
		return err
	}
	_, _ = takeForAnHour, giveBack
}

// What happens in the zone, as it happens.
func ExampleClient_Watch() {
	watch := func(ctx context.Context, c *client.Client) error {
		w, err := c.Watch(ctx, client.WatchOptions{Lock: true})
		if err != nil {
			return err
		}
		defer w.Stop()
		for e, err := range w.Events(ctx) {
			if err != nil {
				return err
			}
			fmt.Println(e.Lock.Type, e.Lock.Name, e.Lock.Token)
		}
		return nil
	}
	_ = watch
}
