package client

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"

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

// seekQuorum goes on to another server, and to the next one, as long as the one that the client is connected to says that it
// is cut off. Where nobody has a quorum it ends up where it was, about once a second for each server.
func (c *Client) seekQuorum() {
	for {
		select {
		case <-c.quit:
			return
		case <-c.island:
		}
		for c.cutOff() && len(c.nc.Servers()) > 1 {
			c.opts.log.Warn("the server is cut off from its cluster; trying another one", "server", c.nc.ConnectedUrlRedacted())
			if err := c.nc.ForceReconnect(); err != nil {
				c.opts.log.Warn("reconnect", "error", err)
			}
			rest := time.NewTimer(time.Second + rand.N(time.Second)) //nolint:gosec // so that clients do not come all at once
			select {
			case <-c.quit:
				rest.Stop()
				return
			case <-rest.C:
			}
		}
	}
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

