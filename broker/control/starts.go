package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/arbiter"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/conf/shared"
)

const (
	leaderWait = time.Second // for a leader that the others can elect
	askAgain   = 100 * time.Millisecond
)

// memory is what the control store keeps for this package.
type memory struct {
	flow.Starts
	Lease time.Duration `json:"lease,omitempty"` // of the cluster's nodes; 0: the node was never registered
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
	before := c.memory.Starts
	if err := c.keep(before.Begin(c.start)); err != nil {
		return err
	}
	heard, err := c.askStarts(ctx, before)
	if err != nil {
		return err
	}
	own := cmp.Or(c.cfg.NodeLease, arbiter.DefaultLease)
	c.lease = cmp.Or(c.memory.Lease, heard.lease, own)
	if c.lease != own {
		c.log.Info("the cluster's node_lease counts, not this node's own", "cluster", c.lease, "own", own)
	}
	if !heard.old {
		return nil
	}
	if !heard.elects {
		return ErrOldVoter
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

// askStarts asks everybody who is there for this node's last start, until somebody knows of one that the disk does not,
// the leader knows of none, or none can be expected to answer any more.
func (c *Control) askStarts(ctx context.Context, disk flow.Starts) (heard heardStarts, err error) {
	inbox := c.nc.NewInbox()
	sub, err := c.nc.SubscribeSync(inbox)
	if err != nil {
		return heard, err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only if the connection is closed
	question := encode(startQuestion{Identifier: c.cfg.Identifier, Raft: c.store.RaftID()})
	began := time.Now()
	limit := began.Add(requestWait)
	for time.Now().Before(limit) {
		if err := c.nc.PublishRequest(subjectStarts, inbox, question); err != nil {
			return heard, err
		}
		round, cancel := context.WithDeadline(ctx, earlier(limit, time.Now().Add(askAgain)))
		heard, err = c.hearStarts(round, sub, disk)
		cancel()
		switch {
		case err != nil, heard.done:
			return heard, err
		case heard.elects:
			limit = earlier(limit, began.Add(leaderWait))
		case heard.answers > 0:
			return heard, nil // there is no leader, and there will be none before this node is there
		}
	}
	return heard, ctx.Err()
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// heardStarts is what came of one round of questions.
type heardStarts struct {
	old     bool // the disk is older than the node
	done    bool // there is no need to ask again
	elects  bool // the group can have a leader without this node
	lease   time.Duration
	answers int
}

// hearStarts takes the answers of one round.
func (c *Control) hearStarts(ctx context.Context, sub *nats.Subscription, disk flow.Starts) (h heardStarts, err error) {
	for {
		msg, err := sub.NextMsgWithContext(ctx)
		switch {
		case errors.Is(err, nats.ErrNoResponders):
			h.done = true
			return h, nil
		case errors.Is(err, context.DeadlineExceeded):
			return h, nil
		case err != nil:
			return h, fmt.Errorf("ask for this node's last start: %w", err)
		}
		answer, err := decodeMessage[startAnswer](msg.Data)
		if err != nil {
			continue // as if it had not answered
		}
		h.answers++
		h.lease = cmp.Or(answer.Lease, h.lease)
		h.elects = h.elects || answer.Elects
		h.old = answer.Raft == c.store.RaftID() && disk.Older(answer.Start, answer.Change)
		if h.old || answer.Leading || c.store.Empty() && h.lease != 0 {
			h.done = true
			return h, nil
		}
	}
}

// lastStart tells a node what is known here of its last start.
func (c *Control) lastStart(q startQuestion) startAnswer {
	status := c.arb.Status()
	others := len(slices.DeleteFunc(slices.Clone(status.Voters), func(id uint64) bool { return id == q.Raft }))
	answer := startAnswer{Leading: status.Leading, Elects: others > len(status.Voters)/2}
	state := c.State()
	if state.Cluster != "" {
		answer.Lease = state.Settings.NodeLease
	}
	if n := state.NodeByID(q.Identifier); n != nil {
		answer.Raft, answer.Start, answer.Change = n.Raft, n.Start, n.Registered
	}
	return answer
}

// started notes that this start is registered.
func (c *Control) started(n *shared.Node) error {
	if n.Start != c.start {
		return nil
	}
	c.memory.Lease = c.lease // or the leader would have refused it
	return c.keep(c.memory.Registered(n.Start, n.Registered))
}
