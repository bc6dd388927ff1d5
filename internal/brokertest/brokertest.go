package brokertest

import (
	"context"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/opencluster/oclocks/broker"
	"github.com/opencluster/oclocks/conf"
)

// defaultLameDuck is how long clients of a test have to leave.
const defaultLameDuck = 100 * time.Millisecond

// stopTimeout bounds the orderly stop of a daemon at the end of its test.
const stopTimeout = 20 * time.Second

// Option changes the settings of a daemon before it starts.
type Option func(*conf.Settings)

// WithZones replaces the open zone of development mode by zones of the test's own.
func WithZones(zones ...conf.Zone) Option {
	return func(s *conf.Settings) { s.Zones = zones }
}

// WithData keeps the journal and the keys in dir.
func WithData(dir string) Option {
	return func(s *conf.Settings) { s.Data = dir }
}

// WithLease sets the lease of sessions that ask for none.
func WithLease(lease time.Duration) Option {
	return func(s *conf.Settings) { s.SessionLease = lease }
}

// Settings are those of a test's daemon: development mode on a free loopback port, without HTTP.
func Settings(opts ...Option) *conf.Settings {
	s := conf.Default()
	s.Listen, s.HTTP = "127.0.0.1:0", "off"
	for _, opt := range opts {
		opt(s)
	}
	return s
}

// Start starts a daemon that is stopped when the test ends. Its log goes to nowhere unless the test is run with -v.
func Start(t testing.TB, opts ...Option) *broker.Daemon {
	t.Helper()
	d, err := start(t, opts)
	if err != nil {
		t.Fatalf("start a daemon: %v", err)
	}
	t.Cleanup(func() { Stop(t, d) })
	return d
}

func start(t testing.TB, opts []Option) (*broker.Daemon, error) {
	return broker.Start(context.Background(), broker.Config{
		Settings: Settings(opts...), Logger: Logger(t), LameDuck: defaultLameDuck,
	})
}

// TryStart is Start for settings that should be refused: it returns the error, nil if the daemon started after all.
func TryStart(t testing.TB, opts ...Option) error {
	t.Helper()
	d, err := start(t, opts)
	if err == nil {
		Stop(t, d)
	}
	return err
}

// Stop stops a daemon in an orderly way; stopping it twice is no error.
func Stop(t testing.TB, d *broker.Daemon) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	if err := d.Stop(ctx); err != nil {
		t.Errorf("stop the daemon: %v", err)
	}
}

// Logger is what a test's daemon logs to.
func Logger(testing.TB) *slog.Logger {
	out := io.Discard
	if testing.Verbose() {
		out = os.Stderr
	}
	return slog.New(slog.NewTextHandler(out, nil))
}
