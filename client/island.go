package client

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
)

// modeNoQuorum is the mode of a node that may grant nothing, because it is cut off from most of the others, or they are gone.
const modeNoQuorum = "no-quorum"

const (
	// vacantLimit is how long a bucket may have no primary, as the server sees it: longer than a fail-over takes. A server
	// may be cut off from a primary that others reach, and what goes from server to server goes one hop only.
	vacantLimit = 2 * time.Second

	// roamLimit bounds the rest after a change of the server that did not help.
	roamLimit = 30 * time.Second
)

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

// roam goes on to another server when this one says that it is cut off, or does not reach the primary of a bucket for longer
// than a fail-over takes. Where that is no better it goes on, more and more slowly.
func (c *Client) roam() {
	look := time.NewTicker(vacantLimit / 4)
	defer look.Stop()
	rest := time.Duration(0)
	var tried time.Time
	for {
		suspect := false
		select {
		case <-c.quit:
			return
		case <-c.island:
			suspect = c.cutOff()
		case <-look.C:
		}
		vacant := c.vacant() > vacantLimit
		if !suspect && !vacant {
			if time.Since(tried) > roamLimit {
				rest = 0
			}
			continue
		}
		if len(c.nc.Servers()) < 2 || time.Since(tried) < rest {
			if suspect {
				time.AfterFunc(rest, func() { signal(c.island) })
			}
			continue
		}
		tried, rest = time.Now(), min(max(2*rest, vacantLimit/2), roamLimit)+rand.N(vacantLimit/4) //nolint:gosec // so that not all come at once
		c.opts.log.Warn("the server does not reach its whole cluster; trying another one", "server", c.nc.ConnectedUrlRedacted())
		if err := c.nc.ForceReconnect(); err != nil {
			c.opts.log.Warn("reconnect", "error", err)
		}
	}
}

// vacant is how long a bucket that somebody waits for has had no primary.
func (c *Client) vacant() (d time.Duration) {
	c.do(func(now int64) { d = time.Duration(c.m.Vacant(now)) })
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
