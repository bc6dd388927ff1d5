package client_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/opencluster/oclocks/broker"
	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/internal/brokertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = time.Minute

// within gives a context for the whole of a test.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// connect connects a client that is closed at the end of the test.
func connect(t testing.TB, d *broker.Daemon, opts ...client.Option) *client.Client {
	t.Helper()
	return connectURL(t, d.URL(), opts...)
}

func connectURL(t testing.TB, url string, opts ...client.Option) *client.Client {
	t.Helper()
	var c *client.Client
	waitFor(t, "the broker to be reached", func() (ok bool) { // in two seconds, for some of which a machine may stand still
		var err error
		c, err = client.Connect(within(t), url, append([]client.Option{client.WithLogger(brokertest.Logger(t))}, opts...)...)
		if err != nil && !errors.Is(err, client.ErrUnavailable) {
			t.Fatal(err)
		}
		return err == nil
	})
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := c.Close(ctx); err != nil {
			t.Errorf("close the client: %v", err)
		}
	})
	return c
}

// must fails the test for an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lockOf locks and fails the test if that fails.
func lockOf(t testing.TB, m *client.Mutex) *client.Claim {
	t.Helper()
	claim, err := m.Lock(within(t))
	if err != nil {
		t.Fatal(err)
	}
	return claim
}
