package client

import (
	"context"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/internal/machine"
)

// modeNoQuorum is the mode of a node that may grant nothing, because it is cut off from most of the others, or they are gone.
const modeNoQuorum = "no-quorum"

// receiveCluster takes an event of the cluster. A node that is cut off tells its own clients so: to NATS the connection to
// it is as good as ever.
func (c *Client) receiveCluster(msg *nats.Msg) {
	e := decodeEvent(msg)
	if e == nil || e.Server == nil {
		return
	}
	if e.Server.Mode == modeNoQuorum {
		signal(c.island)
	}
	c.heard(*e.Server)
}

// roam goes on to another server when this one does not reach its whole cluster (machine.Roam).
func (c *Client) roam() {
	look := time.NewTicker(machine.VacantLimit / 4)
	defer look.Stop()
	var roam machine.Roam
	for {
		suspect := false
		select {
		case <-c.quit:
			return
		case <-c.island:
			suspect = c.cutOff()
		case <-look.C:
		}
		leave, again := roam.Look(boottime.Now(), suspect, c.vacant(), len(c.nc.Servers()), random)
		if again > 0 {
			time.AfterFunc(again, func() { signal(c.island) })
		}
		if !leave {
			continue
		}
		c.opts.log.Warn("the server does not reach its whole cluster; trying another one", "server", c.nc.ConnectedUrlRedacted())
		if err := c.nc.ForceReconnect(); err != nil {
			c.opts.log.Warn("reconnect", "error", err)
		}
	}
}

// vacant is how long a bucket that somebody waits for has had no primary.
func (c *Client) vacant() (d int64) {
	c.do(func(now int64) { d = c.m.Vacant(now) })
	return d
}

// cutOff asks the server whether it is. One that does not say is not: if it is dead, NATS will notice.
func (c *Client) cutOff() bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	go func() {
		select {
		case <-c.quit:
			cancel()
		case <-ctx.Done():
		}
	}()
	info, err := c.Info(ctx)
	return err == nil && info.Mode == modeNoQuorum
}
