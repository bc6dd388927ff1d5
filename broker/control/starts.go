package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/arbiter"
	"github.com/opencluster/oclocks/broker/control/enrol"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/internal/boottime"
)

// memory is what the control store keeps for this package.
type memory struct {
	flow.Starts
	Lease time.Duration `json:"lease,omitempty"` // of the cluster's nodes; 0: the node was never registered

	Journal string `json:"journal,omitempty"` // the journal's mark, of the last process that was registered
}

// begins makes this start known to the disk, and makes the control store a new one if the disk is older than the node: see
// doc.go. It finds out how long the cluster's leases are. No arbiter uses the store yet.
func (c *Control) begins(ctx context.Context) error {
	kept, err := c.store.Kept()
	if err != nil {
		return err
	}
	if kept != nil {
		if c.memory, err = decodeMessage[memory](kept); err != nil {
			return fmt.Errorf("what the control store knows of earlier starts: %w", err)
		}
	}
	if mark := c.memory.Journal; mark != "" && c.cfg.Lacks != nil && c.cfg.Lacks(mark) {
		c.log.Warn("the journal is older than the control store: it may lack what this node has confirmed, so the node begins another life", "dir", c.cfg.Dir)
		c.cfg.Fresh = true
	}
	before := c.memory.Starts
	if err := c.keep(before.Begin(c.start)); err != nil {
		return err
	}
	heard, err := c.askStarts(ctx, enrol.NewAsking(before, c.store.RaftID(), c.store.Empty()))
	if err != nil {
		return err
	}
	own := cmp.Or(c.cfg.NodeLease, arbiter.DefaultLease)
	c.lease = cmp.Or(c.memory.Lease, heard.Lease, own)
	if c.lease != own {
		c.log.Info("the cluster's node_lease counts, not this node's own", "cluster", c.lease, "own", own)
	}
	if !heard.Old || heard.Err != nil {
		return heard.Err
	}
	c.log.Warn("what this node has on its disk is older than its last start: it begins anew", "dir", c.cfg.Dir)
	if err := c.store.Renew(); err != nil {
		return fmt.Errorf("throw the old control store away: %w", err)
	}
	return c.keep(flow.Starts{}.Begin(c.start))
}

// keep stores what the disk knows of starts from now on.
func (c *Control) keep(s flow.Starts) error {
	c.memory.Starts = s
	if err := c.store.Keep(encode(c.memory)); err != nil {
		return fmt.Errorf("store this start of the node: %w", err)
	}
	return nil
}

// askStarts asks everybody who is there for this node's last start.
func (c *Control) askStarts(ctx context.Context, a *enrol.Asking) (out enrol.Asked, err error) {
	inbox := c.nc.NewInbox()
	sub, err := c.nc.SubscribeSync(inbox)
	if err != nil {
		return out, err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only if the connection is closed
	question := encode(startQuestion{Identifier: c.cfg.Identifier, Raft: c.store.RaftID()})
	for out = a.Step(boottime.Now(), false); !out.Done; {
		if out.Ask {
			if err := c.nc.PublishRequest(subjectStarts, inbox, question); err != nil {
				return out, err
			}
		}
		wait, cancel := context.WithTimeout(ctx, time.Duration(out.Next-boottime.Now()))
		msg, err := sub.NextMsgWithContext(wait)
		cancel()
		var answers []enrol.Start
		switch {
		case err == nil:
			if answer, err := decodeMessage[startAnswer](msg.Data); err == nil { // else as if it had not answered
				answers = append(answers, answer)
			}
		case errors.Is(err, nats.ErrNoResponders), ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		default:
			return out, fmt.Errorf("ask for this node's last start: %w", err)
		}
		out = a.Step(boottime.Now(), errors.Is(err, nats.ErrNoResponders), answers...)
	}
	return out, nil
}
