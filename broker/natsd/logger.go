package natsd

import (
	"context"
	"fmt"
	"log/slog"
	"sync"

	"github.com/nats-io/nats-server/v2/server"
)

// bridge is nats-server's logger. Notices are news of a stand-alone server; the daemon tells what matters of them
// itself, so they are for debugging here. What nats-server calls an error is as a rule a client's (wrong credentials, a
// limit that it met), so it is a warning. A fatal error does not end the process: it is kept for Start.
type bridge struct {
	log     *slog.Logger
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

func (b *bridge) Noticef(format string, args ...any) {
	if b.noticed != nil {
		b.noticed()
	}
	b.write(slog.LevelDebug, format, args)
}
func (b *bridge) Warnf(format string, args ...any)  { b.write(slog.LevelWarn, format, args) }
func (b *bridge) Errorf(format string, args ...any) { b.write(slog.LevelWarn, format, args) }
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
