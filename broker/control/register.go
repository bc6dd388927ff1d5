package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker/control/desk"
	"github.com/opencluster/oclocks/broker/control/enrol"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/internal/boottime"
)

// probeSelf looks whether another process says that it is this node.
func (c *Control) probeSelf(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	_, err := c.nc.RequestWithContext(ctx, subjectHere(c.cfg.Identifier), nil)
	switch {
	case err == nil:
		return fmt.Errorf("%w (identifier %s)", ErrDuplicate, c.cfg.Identifier)
	case errors.Is(err, nats.ErrNoResponders), errors.Is(err, context.DeadlineExceeded):
		return nil
	}
	return fmt.Errorf("look whether this node is running already: %w", err)
}

// clusterExists asks whether somebody who can be reached belongs to a cluster. If somebody listens and nobody answers, it is
// asked again: founding a second cluster beside the first one would be worse than not to start.
func (c *Control) clusterExists(ctx context.Context) (bool, error) {
	for range 5 {
		exists, answers, err := c.probeCluster(ctx)
		switch {
		case err != nil:
			return false, fmt.Errorf("look for a cluster: %w", err)
		case exists || answers:
			return exists, nil
		}
	}
	return false, fmt.Errorf("%w: a node is there that does not say whether it belongs to a cluster", ErrUnavailable)
}

// probeCluster asks all at once, since those who wait to join do not belong to a cluster yet, but others may. answers says
// that it is known that nobody is there, or that somebody has answered.
func (c *Control) probeCluster(ctx context.Context) (exists, answers bool, err error) {
	inbox := c.nc.NewInbox()
	sub, err := c.nc.SubscribeSync(inbox)
	if err != nil {
		return false, false, err
	}
	defer func() { _ = sub.Unsubscribe() }() // fails only if the connection is closed
	if err := c.nc.PublishRequest(subjectStatus, inbox, nil); err != nil {
		return false, false, err
	}
	wait, cancel := context.WithTimeout(ctx, probeWait)
	defer cancel()
	for {
		msg, err := sub.NextMsgWithContext(wait)
		switch {
		case errors.Is(err, nats.ErrNoResponders):
			return false, true, nil
		case ctx.Err() != nil:
			return false, answers, ctx.Err()
		case errors.Is(err, context.DeadlineExceeded):
			return false, answers, nil
		case err != nil:
			return false, answers, err
		}
		if status, err := decodeMessage[Status](msg.Data); err == nil {
			answers = true
			if status.Change > 0 || status.Leader > 0 {
				return true, true, nil
			}
		}
	}
}

// enrolment asks for registration until the node is registered, and now and then while it knows of no leader.
func (c *Control) enrolment() {
	request := encode(shared.Register{
		ID: c.cfg.Identifier, Raft: c.store.RaftID(), Fresh: c.cfg.Fresh, Name: c.cfg.Name, Location: c.cfg.Location,
		Priority: c.cfg.Priority, Routes: c.cfg.Routes, Clients: c.cfg.Clients,
		Level: shared.Written(shared.Known), Start: c.start, Starts: c.memory.Before(c.start), Lease: c.lease,
	})
	e := enrol.NewEnrolment(c.cfg.Identifier, c.store.RaftID(), c.start, c.memory.Starts)
	timer := boottime.NewTimer()
	defer timer.Close()
	var answer *admission
	for {
		changed := c.bell.wait()
		facts := enrol.Facts{State: c.State(), Leader: c.arb.Status().Leader, Now: boottime.Now()}
		out := e.Step(facts, answer)
		answer = nil
		switch {
		case out.Fail != nil:
			c.old.Store(out.OldDisk)
			c.fail(out.Fail)
			return
		case out.Become != nil:
			if err := c.become(out.Become, out.Starts); err != nil {
				c.fail(err)
				return
			}
		case out.Stays:
			c.stay()
		case out.Ask:
			answer = c.askRegister(request)
			if c.ctx.Err() != nil {
				return
			}
			continue
		}
		timer.Reset(out.Next)
		select {
		case <-changed:
		case <-timer.C:
		case <-c.ctx.Done():
			return
		}
	}
}

// stay says, once, that this node is there for its vote only.
func (c *Control) stay() {
	if !c.Stays() {
		close(c.staying)
		c.log.Info("this node was removed from the cluster, and votes until enough other voters are there; then it ends")
	}
}

// Staying is closed when this node was removed from the cluster and is there for its vote only.
func (c *Control) Staying() <-chan struct{} { return c.staying }

// Stays says whether Staying is closed.
func (c *Control) Stays() bool {
	select {
	case <-c.staying:
		return true
	default:
		return false
	}
}

// askRegister asks whoever leads.
func (c *Control) askRegister(request []byte) *admission {
	ctx, cancel := context.WithTimeout(c.ctx, time.Duration(enrol.RequestWait))
	defer cancel()
	answer := enrol.Silence
	msg, err := c.nc.RequestWithContext(ctx, subjectRegister, request)
	if err == nil {
		var a admission
		if a, err = decodeMessage[admission](msg.Data); err == nil {
			answer = a
		}
	}
	if err != nil {
		c.log.Debug("no leader registers this node yet", "error", err)
	}
	return &answer
}

// become makes this node the registered one: it hears what is sent to its number, and asks for leases.
func (c *Control) become(n *shared.Node, starts flow.Starts) error {
	c.memory.Lease = c.lease // or the leader would have refused it
	c.memory.Journal = c.cfg.Journal
	if err := c.keep(starts); err != nil {
		return err
	}
	if err := c.listenAs(n.Number); err != nil {
		return err
	}
	c.mu.Lock()
	c.self = identity{Number: n.Number, Life: n.Life, Change: n.Registered}
	c.mu.Unlock()
	if err := c.arb.Identify(n.Number, nil); err != nil {
		return fmt.Errorf("ask for leases: %w", err)
	}
	c.log.Info("registered in the cluster", "node", n.Number, "life", n.Life, "change", n.Registered)
	c.bell.ring()
	c.box.notice(desk.Introduce{})
	return nil
}
