package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/opencluster/oclocks/broker/control/leave"
	"github.com/opencluster/oclocks/internal/boottime"
)

const statusWait = 400 * time.Millisecond // for the statuses of all nodes

// Leave asks the leader to move everything that this node is primary of to others, waits until that is done, gives the
// leadership away if it has it, and tells everybody that this node goes, in any case: package leave. Errors: ErrAlone, nobody is
// there to take over; leave.ErrLate with the context's; ErrClosed.
func (c *Control) Leave(ctx context.Context) error {
	c.mu.Lock()
	c.leaving = true
	number := c.self.Number
	c.mu.Unlock()
	out, err := c.goAway(ctx, number)
	if err != nil {
		return err
	}
	switch {
	case errors.Is(out.Err, leave.ErrLate):
		err = fmt.Errorf("%w: this node is still primary of %d buckets: %w", out.Err, out.Left, ctx.Err())
	default:
		err = out.Err
	}
	if out.Mute {
		err = errors.Join(err, c.arb.Identify(0, nil))
	}
	c.post.send(subjectAway, encode(farewell{Identifier: c.cfg.Identifier, Start: c.start}))
	return errors.Join(err, c.post.flush(context.WithoutCancel(ctx), c.ctx.Done())) // it says farewell though it ran out of time
}

// Rest begins or ends that this node asks for no leases, so that others take its buckets. One that leaves asks for none in any case.
func (c *Control) Rest(rest bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving || c.self.Number == 0 {
		return nil
	}
	number := c.self.Number
	if rest {
		number = 0
	}
	return c.arb.Identify(number, nil)
}

// goAway steps the room until it is done.
func (c *Control) goAway(ctx context.Context, number uint64) (leave.Output, error) {
	room := leave.New(number)
	timer := boottime.NewTimer()
	defer timer.Close()
	var heard *leave.Heard
	for {
		changed := c.bell.wait()
		out := room.Step(leave.Facts{
			Now: boottime.Now(), Late: ctx.Err() != nil, State: c.State(), Status: c.arb.Status(), Away: c.seen.Load().away,
		}, heard)
		heard = nil
		switch {
		case out.Done:
			return out, nil
		case out.Ask:
			heard = c.askLeaving(ctx, number)
			continue
		case out.Transfer:
			heard = &leave.Heard{Moved: c.arb.Transfer(ctx, 0) == nil}
			continue
		}
		timer.Reset(out.Next)
		select {
		case <-changed:
		case <-timer.C:
		case <-ctx.Done():
		case <-c.ctx.Done():
			return leave.Output{}, ErrClosed
		}
	}
}

// askLeaving asks whoever leads.
func (c *Control) askLeaving(ctx context.Context, number uint64) *leave.Heard {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(leave.AskWait))
	defer cancel()
	silence := leave.Silence
	msg, err := c.nc.RequestWithContext(ctx, subjectLeaving, encode(leaving{number}))
	if err != nil {
		return &silence
	}
	answer, err := decodeMessage[leavingAnswer](msg.Data)
	if err != nil {
		c.log.Warn("the leader's answer to a node that leaves cannot be read", "error", err)
		return &silence
	}
	return &leave.Heard{Asked: true, Others: answer.Others}
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
