package broker

import (
	"context"
	"errors"
	"testing"

	"github.com/opencluster/oclocks/conf/shared"
)

// Change changes the shared configuration.
func (d *Daemon) Change(ctx context.Context, command shared.Command) error {
	result, err := d.control.Change(ctx, command)
	if err != nil {
		return err
	}
	return result.Err()
}

// Crash ends the daemon as the death of its process would, as far as that can be in the process of a test: it hands nothing
// over, answers nothing more, and its journal has no mark of a clean shutdown.
func (d *Daemon) Crash(t testing.TB) {
	d.stopOnce.Do(func() {
		d.end(errors.New("crash"))
		ctx, cancel := context.WithTimeout(context.Background(), natsTimeout)
		defer cancel()
		if d.http != nil {
			if err := d.http.server.Close(); err != nil {
				t.Logf("crash: %v", err)
			}
			<-d.http.done
		}
		// The server's Shutdown races with clients that come in at that moment.
		if err := errors.Join(d.nats.LameDuck(ctx), d.abandon()); err != nil {
			t.Logf("crash: %v", err)
		}
	})
}

// Shared is the shared configuration as this node has it.
func (d *Daemon) Shared() *shared.State { return d.control.State() }

// Withdraw is what a node does that was removed and stays for its vote.
func (d *Daemon) Withdraw() { d.withdraw() }

// ApplyZones takes over the zones of a state.
func (d *Daemon) ApplyZones(ctx context.Context, state *shared.State) error {
	return d.applyZones(ctx, state)
}
