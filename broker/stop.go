package broker

import (
	"context"
	"errors"
	"fmt"

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
	d.reloading.Lock()
	defer d.reloading.Unlock()
	d.log.Info("stopping")
	d.ready.Store(false)
	d.announce("down", "stopping")
	zones := *d.zones.Load()
	for _, z := range zones {
		z.stopping.Store(true)
	}
	d.system.stop()
	err := d.stopShards(ctx)
	for _, z := range zones {
		z.stop()
	}
	d.overOnce.Do(func() { close(d.over) })
	d.helpers.Wait()
	if d.journal != nil {
		if closeErr := d.journal.Close(err == nil && !d.failed()); closeErr != nil {
			err = errors.Join(err, fmt.Errorf("close the journal: %w", closeErr))
		}
	}
	if d.http != nil {
		err = errors.Join(err, d.http.stop(ctx))
	}
	err = errors.Join(err, d.nats.LameDuck(ctx), d.nats.Stop(ctx))
	d.log.Info("stopped")
	return err
}

// stopShards answers the waiters and lets every shard finish what it has.
func (d *Daemon) stopShards(ctx context.Context) error {
	for _, s := range d.shards {
		s.queue.put(&task{kind: taskCall, call: func(s *shard) {
			for _, number := range s.numbers {
				s.feed(number, &bucket.Input{Kind: bucket.Stop, KeepSessions: d.journal != nil})
			}
		}})
	}
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

// abandon takes down what a failed start has brought up.
func (d *Daemon) abandon() error {
	d.end(errors.New("the start failed"))
	var err error
	for _, z := range *d.zones.Load() {
		z.stop()
	}
	if d.system != nil {
		d.system.stop()
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
