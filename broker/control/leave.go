package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/opencluster/oclocks/broker/control/reign"
)

const (
	leaveEvery   = 250 * time.Millisecond // how often the leader is told
	aloneFor     = 3                      // times that the leader says that nobody else is there, or that nobody is
	transferWait = time.Second
	voteWait     = 3 * time.Second // until the others can decide without this node
	voteLook     = 20 * time.Millisecond
	statusWait   = 400 * time.Millisecond // for the statuses of all nodes
)

// Leave asks the leader to move everything that this node is primary of to others, waits until that is done, gives the
// leadership away if it has it, and tells everybody that this node goes, in any case. Errors: ErrAlone, nobody is there to
// take over; the context's; ErrClosed.
func (c *Control) Leave(ctx context.Context) error {
	c.mu.Lock()
	c.leaving = true
	number := c.self.Number
	c.mu.Unlock()
	var err error
	if number != 0 {
		if err = c.handAll(ctx, number); !errors.Is(err, ErrAlone) {
			c.handVote(ctx, number)
		}
		c.abdicate(ctx)
		err = errors.Join(err, c.arb.Identify(0, nil))
	}
	c.post.send(subjectAway, encode(farewell{Identifier: c.cfg.Identifier, Start: c.start}))
	return errors.Join(err, c.post.flush(context.WithoutCancel(ctx), c.ctx.Done())) // it says farewell though it ran out of time
}

// handAll waits until this node is primary of nothing.
func (c *Control) handAll(ctx context.Context, number uint64) error {
	alone := 0
	for {
		changed := c.bell.wait()
		left := reign.Primaries(c.State(), number)
		if left == 0 {
			return nil
		}
		others, err := c.askLeaving(ctx, number)
		switch {
		case err == nil && others == 0, err != nil && c.everybodyAway():
			if alone++; alone >= aloneFor {
				return ErrAlone
			}
		default:
			alone = 0
		}
		next := time.NewTimer(leaveEvery)
		for again := true; again; {
			select {
			case <-changed:
				changed = c.bell.wait()
				again = reign.Primaries(c.State(), number) > 0
			case <-next.C:
				again = false
			case <-ctx.Done():
				next.Stop()
				return fmt.Errorf("this node is still primary of %d buckets: %w", reign.Primaries(c.State(), number), ctx.Err())
			case <-c.ctx.Done():
				next.Stop()
				return ErrClosed
			}
		}
		next.Stop()
	}
}

func (c *Control) askLeaving(ctx context.Context, number uint64) (others int, err error) {
	ctx, cancel := context.WithTimeout(ctx, leaveEvery)
	defer cancel()
	msg, err := c.nc.RequestWithContext(ctx, subjectLeaving, encode(leaving{number}))
	if err != nil {
		return 0, err
	}
	answer, err := decodeMessage[leavingAnswer](msg.Data)
	return answer.Others, err
}

// handVote waits until the others can decide without this node's vote: right after a cluster was made there may be two voters,
// and the one that is left could never make a third. The leader's plan promotes another node, or has this one not vote any
// more, once it knows that this one goes. Nobody is waited for if all others go too.
func (c *Control) handVote(ctx context.Context, number uint64) {
	ctx, cancel := context.WithTimeout(ctx, voteWait)
	defer cancel()
	look := time.NewTicker(voteLook)
	defer look.Stop()
	for told := time.Now(); ; {
		status := c.arb.Status()
		if len(status.Voters) > 2 || !slices.Contains(status.Voters, status.Raft) {
			return
		}
		if now := time.Now(); now.Sub(told) >= leaveEvery {
			told = now
			if others, err := c.askLeaving(ctx, number); err == nil && others == 0 {
				return
			}
		}
		select {
		case <-look.C:
		case <-ctx.Done():
			return
		case <-c.ctx.Done():
			return
		}
	}
}

// everybodyAway says that this node knows of nobody else who is there.
func (c *Control) everybodyAway() bool {
	state, seen := c.State(), c.seen.Load()
	for i := range state.Nodes {
		n := &state.Nodes[i]
		if n.ID != c.cfg.Identifier && !n.Arbiter && !seen.away[n.Number] {
			return false
		}
	}
	return true
}

// abdicate hands the leadership to the best of the others, if there is one.
func (c *Control) abdicate(ctx context.Context) {
	timer := time.NewTimer(transferWait)
	defer timer.Stop()
	for {
		changed := c.bell.wait()
		if !c.arb.Status().Leading || c.arb.Transfer(ctx, 0) != nil {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		case <-c.ctx.Done():
			return
		}
	}
}

// Cluster asks all nodes for their status and gives what came, by number, when all have answered that are registered and
// not away, or after a short while.
func (c *Control) Cluster(ctx context.Context) ([]Status, error) {
	ctx, cancel := context.WithTimeout(ctx, statusWait)
	defer cancel()
	inbox := c.nc.NewInbox()
	sub, err := c.nc.SubscribeSync(inbox)
	if err != nil {
		return nil, fmt.Errorf("ask all nodes for their status: %w", err)
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only if the connection is closed
	if err := c.nc.PublishRequest(subjectStatus, inbox, nil); err != nil {
		return nil, fmt.Errorf("ask all nodes for their status: %w", err)
	}
	byID := map[string]Status{}
	for !c.complete(byID) {
		msg, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			break
		}
		if status, err := decodeMessage[Status](msg.Data); err == nil && status.Identifier != "" {
			byID[status.Identifier] = status
		}
	}
	list := slices.Collect(maps.Values(byID))
	slices.SortFunc(list, func(a, b Status) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Identifier, b.Identifier))
	})
	return list, nil
}

// complete says whether everybody has answered of whom an answer can be expected.
func (c *Control) complete(got map[string]Status) bool {
	state, seen := c.State(), c.seen.Load()
	for i := range state.Nodes {
		n := &state.Nodes[i]
		if _, ok := got[n.ID]; !ok && !seen.away[n.Number] && !n.Arbiter {
			return false
		}
	}
	return len(got) > 0
}
