package broker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/opencluster/oclocks/broker/control"
	"github.com/opencluster/oclocks/bucket"
)

// Stop ends the daemon in an orderly way: nothing new is taken (503 stopping), the servers' clients are told by event,
// waiters that the journal cannot keep are answered 503, everything that was decided is committed and answered, the
// journal is closed with its mark of a clean shutdown, and the embedded server sends its clients away (lame duck), which
// ends no session. Stop may be called more than once; each call returns when the daemon is over.
func (d *Daemon) Stop(ctx context.Context) error {
	d.stopOnce.Do(func() { d.stopErr = d.stop(ctx) })
	return d.stopErr
}

func (d *Daemon) stop(ctx context.Context) error {
	d.log.Info("stopping")
	d.announce(statusStopping) // before the others see it go
	toolsErr := d.leaveOperators()
	others := d.leave(ctx)
	d.reloading.Lock()
	d.closing = true // the zones stay as they are from now on
	d.reloading.Unlock()
	d.ready.Store(false)
	zones := *d.zones.Load()
	for _, z := range zones {
		if others {
			z.retire(ctx)
		}
		z.stopping.Store(true)
	}
	d.system.stop()
	err := d.stopShards(ctx)
	d.awaitPassed(ctx)
	for _, z := range zones {
		z.stop()
	}
	d.overOnce.Do(func() { close(d.over) })
	d.closeDirect()
	d.control.Close()
	d.helpers.Wait()
	if d.journal != nil {
		if closeErr := d.journal.Close(err == nil && !d.failed()); closeErr != nil {
			err = errors.Join(err, fmt.Errorf("close the journal: %w", closeErr))
		}
	}
	if d.http != nil {
		err = errors.Join(err, d.http.stop(ctx))
	}
	err = errors.Join(err, toolsErr, d.nats.LameDuck(ctx), d.nats.Stop(ctx))
	d.log.Info("stopped")
	return err
}

// stopShards answers the waiters and lets every shard finish what it has. Where other nodes have taken over there is none:
// the buckets are not this node's any more.
func (d *Daemon) stopShards(ctx context.Context) error {
	d.tell(func(s *shard) {
		s.all(func(c *cell) {
			c.Tell(s.now, &bucket.Input{Kind: bucket.Stop, KeepSessions: d.journal != nil})
			s.dismiss(c)
		})
	})
	d.drained.Store(true)
	for _, s := range d.shards {
		s.queue.kick()
		select {
		case <-s.done:
		case <-ctx.Done():
			return fmt.Errorf("wait for the requests in progress: %w", ctx.Err())
		}
	}
	return nil
}

// leave hands everything that this node is primary of to others, and has them know that it goes. Meanwhile it serves. It
// says whether there are others.
func (d *Daemon) leave(ctx context.Context) (others bool) {
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	err := d.control.Leave(ctx)
	if err != nil && !errors.Is(err, control.ErrAlone) {
		d.log.Warn("not everything was handed over; what is left is taken over when this node's lease ends", "error", err)
	}
	return !errors.Is(err, control.ErrAlone)
}

// leaveTime is how long a node that is being stopped tries to hand its buckets over.
const leaveTime = 5 * time.Second

// abandon takes down what a failed start has brought up.
func (d *Daemon) abandon() error {
	d.end(errors.New("the start failed"))
	err := d.leaveOperators()
	for _, z := range *d.zones.Load() {
		z.stop()
	}
	if d.system != nil {
		d.system.stop()
	}
	d.closeDirect()
	if d.control != nil {
		d.control.Close()
	}
	d.helpers.Wait()
	for _, s := range d.shards {
		s.timer.Close()
	}
	if d.journal != nil {
		err = errors.Join(err, d.journal.Close(false))
	}
	if d.nats != nil {
		ctx, cancel := context.WithTimeout(context.Background(), natsTimeout)
		defer cancel()
		err = errors.Join(err, d.nats.Stop(ctx))
	}
	return err
}
