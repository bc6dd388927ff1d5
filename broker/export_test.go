package broker

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/opencluster/oclocks/broker/parking"
	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/subjects"
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

// Retire is what a node does in a zone when it stops.
func (d *Daemon) Retire(ctx context.Context, zone string) { d.zone(zone).retire(ctx) }

// Unlistened gives a channel that is closed when all that is to be ended in a zone is.
func (d *Daemon) Unlistened(zone string) <-chan struct{} { return d.zone(zone).unlistened() }

// Unlisten ends all subscriptions of a zone that are not a bucket's, whether they are over or not.
func (d *Daemon) Unlisten(zone string) {
	z := d.zone(zone)
	z.turnMu.Lock()
	defer z.turnMu.Unlock()
	z.unlisten(z.subs...)
}

// ApplyZones takes over the zones of a state.
func (d *Daemon) ApplyZones(ctx context.Context, state *shared.State) error {
	return d.applyZones(ctx, state)
}

// Hold keeps the daemon's shards from working until release is closed; it returns when they stand still.
func (d *Daemon) Hold(release <-chan struct{}) { d.HoldNext(release, func() {}) }

// HoldNext is Hold for shards that stand still now: goOn lets them go on, with a batch in which they stand still before its requests.
func (d *Daemon) HoldNext(release <-chan struct{}, goOn func()) {
	held := make(chan struct{})
	d.tell(func(*shard) {
		held <- struct{}{}
		<-release
	})
	goOn()
	for range d.shards {
		<-held
	}
}

// CutDirect ends the daemon's direct links for good.
func (d *Daemon) CutDirect() { d.closeDirect() }

// PassOn passes a try to take a lock on to a node, over NATS, as if that were known to be its bucket's primary.
func (d *Daemon) PassOn(zone, name, reply string, node uint64) {
	t := newTask(taskOne, d.zone(zone))
	t.req = subjects.Request{Op: subjects.OpAcquire, Name: name, Take: 1}
	t.in = bucket.Input{Kind: bucket.Request, Zone: zone, User: subjects.Anyone, Reply: reply}
	t.bucket, t.trip.Hops = subjects.BucketOf(name, uint32(d.buckets())), 1
	t.forward(node)
}

// Listen begins or ends that the node is asked about its buckets in a zone, as a turn of each does.
func (d *Daemon) Listen(zone string, on bool) {
	for number := range uint32(d.buckets()) {
		d.turns[number].Store(on)
		d.zone(zone).turn(number)
	}
}

// BreakWhile breaks the connection into a zone, at a moment that differs from round to round, while do is done; it returns when the
// connection is there again.
func (d *Daemon) BreakWhile(t testing.TB, zone string, round int, do func()) {
	conn := d.zone(zone).conn
	broken := make(chan struct{})
	go func() {
		defer close(broken)
		for range round {
			runtime.Gosched()
		}
		if err := conn.ForceReconnect(); err != nil {
			t.Error(err)
		}
	}()
	do()
	<-broken
	<-d.zone(zone).unlistened()
	for !conn.IsConnected() {
		runtime.Gosched()
	}
}

// Lost and Back tell the daemon that its connection into a zone is lost, and there again, as nats.go does.
func (d *Daemon) Lost(zone string) {
	conn := d.zone(zone).conn
	conn.Opts.DisconnectedErrCB(conn, errors.New("it was taken away"))
}

// Back tells that it is there again.
func (d *Daemon) Back(zone string) {
	conn := d.zone(zone).conn
	conn.Opts.ReconnectedCB(conn)
}

// Mapped says whether a zone's simple requests of this server's clients come to this node.
func (d *Daemon) Mapped(zone string) bool {
	z := d.zone(zone)
	z.hereMu.Lock()
	defer z.hereMu.Unlock()
	return z.mapped
}

// HoldMapping keeps a zone's mapping from being changed until release is called, as a reload of the server's accounts does.
func (d *Daemon) HoldMapping(zone string) (release func()) {
	z := d.zone(zone)
	z.hereMu.Lock()
	return z.hereMu.Unlock
}

// FillOutward has a zone keep as many requests that were passed on over NATS as it may, until empty is called.
func (d *Daemon) FillOutward(zone string) (empty func()) {
	o := &d.zone(zone).outward
	o.mu.Lock()
	defer o.mu.Unlock()
	o.bytes += maxOutwardBytes + 1
	return func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.bytes -= maxOutwardBytes + 1
	}
}

// FillAside has a zone have as many requests put off as it may, until empty is called.
func (d *Daemon) FillAside(zone string) (empty func()) {
	n := &d.zone(zone).aside.requests
	n.Add(int64(parking.DefaultLimits.Requests))
	return func() { n.Add(-int64(parking.DefaultLimits.Requests)) }
}
