package natsd

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// What nats-server says again and again, such as that the same address does not answer, is told this often in this time.
const (
	saidMost  = 10
	saidEvery = time.Minute
	saidKinds = 256 // of messages that are told apart
)

// said counts what was said, by the text of its format without the connection that it is about.
type said struct {
	mu    sync.Mutex
	since time.Time
	count map[string]int
}

// connection is how nats-server begins what it says of a connection.
var connection = regexp.MustCompile(`^.*? - [a-z]+:\d+ - `)

// again says whether it is to be said, and whether for the last time before it is left out for a while.
func (s *said) again(format string, now time.Time) (say, last bool) {
	kind := connection.ReplaceAllString(format, "")
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count == nil || now.Sub(s.since) >= saidEvery {
		s.since, s.count = now, map[string]int{}
	}
	if s.count[kind] == 0 && len(s.count) >= saidKinds {
		return false, false
	}
	s.count[kind]++
	return s.count[kind] <= saidMost, s.count[kind] == saidMost
}

// bridge is nats-server's logger. Notices are news of a stand-alone server; the daemon tells what matters of them
// itself, so they are for debugging here. What nats-server calls an error is as a rule a client's (wrong credentials, a
// limit that it met), so it is a warning. A fatal error does not end the process: it is kept for Start.
type bridge struct {
	log     *slog.Logger
	said    said
	noticed func() // called for each notice, nil for nothing

	mu    sync.Mutex
	first error
}

var _ server.Logger = (*bridge)(nil)

func newBridge(log *slog.Logger) *bridge { return &bridge{log: log} }

func (b *bridge) write(level slog.Level, format string, args []any) {
	if ctx := context.Background(); b.log.Enabled(ctx, level) {
		b.log.Log(ctx, level, fmt.Sprintf(format, args...))
	}
}

func (b *bridge) warn(format string, args []any) {
	say, last := b.said.again(format, time.Now())
	if !say {
		return
	}
	if last {
		format += " (if it is said again within a minute, it is left out)"
	}
	b.write(slog.LevelWarn, format, args)
}

func (b *bridge) Noticef(format string, args ...any) {
	if b.noticed != nil {
		b.noticed()
	}
	b.write(slog.LevelDebug, format, args)
}
func (b *bridge) Warnf(format string, args ...any)  { b.warn(format, args) }
func (b *bridge) Errorf(format string, args ...any) { b.warn(format, args) }
func (b *bridge) Debugf(format string, args ...any) { b.write(slog.LevelDebug, format, args) }
func (b *bridge) Tracef(format string, args ...any) { b.write(slog.LevelDebug, format, args) }

func (b *bridge) Fatalf(format string, args ...any) {
	b.write(slog.LevelError, format, args)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.first == nil {
		b.first = fmt.Errorf(format, args...)
	}
}

// fatal is the first fatal error, nil if there was none.
func (b *bridge) fatal() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.first
}
