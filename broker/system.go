package broker

import (
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker/edge"
	"github.com/opencluster/oclocks/broker/natsd"
	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/internal/boottime"
)

// systemWatch listens in the system account for connections that end.
type systemWatch struct {
	d    *Daemon
	conn *nats.Conn
}

// watchSystem subscribes to the disconnects of every account. They arrive a few milliseconds after the connection ended,
// also when its client was killed.
func (d *Daemon) watchSystem() (*systemWatch, error) {
	conn, err := d.nats.ConnectSystem(nats.Name("oclocks " + d.node))
	if err != nil {
		return nil, fmt.Errorf("connect into the system account: %w", err)
	}
	w := &systemWatch{d: d, conn: conn}
	if _, err = conn.Subscribe(natsd.DisconnectSubject, w.disconnected); err == nil {
		err = conn.FlushTimeout(natsTimeout)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("watch for disconnects: %w", err)
	}
	return w, nil
}

// disconnected passes on a connection that its client closed. One that the server closed, or that broke in a way that
// says nothing about the client, is silence: the lease decides. A lane is no session's connection (internal/machine, lane.go):
// its end ends nothing, and no bucket need look for what does.
func (w *systemWatch) disconnected(msg *nats.Msg) {
	closed, ok, err := w.d.nats.Closed(msg.Subject, msg.Data)
	if err != nil {
		w.d.log.Warn("a disconnect event could not be read", "subject", msg.Subject, "error", err)
		return
	}
	if !ok || !closed.ByClient {
		return
	}
	w.d.metrics.disconnects.Inc()
	if closed.Lane {
		return
	}
	w.d.connectionClosed(closed.Zone, edge.ConnOf(closed.Server, closed.CID))
}

// connectionClosed tells every shard. The tasks are the daemon's own and not subject to the limit of a zone's requests;
// each is the end of a connection, of which the zone has a limited number.
func (d *Daemon) connectionClosed(zone string, conn bucket.Conn) {
	for _, s := range d.shards {
		s.queue.put(&task{kind: taskCall, call: func(s *shard) {
			s.closed.Add(zone, conn, boottime.Now())
			s.all(func(c *cell) { c.Tell(s.now, &bucket.Input{Kind: bucket.Disconnect, Zone: zone, Conn: conn}) })
		}})
	}
}

func (w *systemWatch) stop() { w.conn.Close() }
