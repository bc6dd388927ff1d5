package control

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker/control/desk"
	"github.com/opencluster/oclocks/conf/shared"
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

// enrolment asks for registration until the node is registered.
func (c *Control) enrolment() {
	request := encode(shared.Register{
		ID: c.cfg.Identifier, Raft: c.store.RaftID(), Fresh: c.cfg.Fresh, Name: c.cfg.Name, Location: c.cfg.Location,
		Priority: c.cfg.Priority, Routes: c.cfg.Routes, Clients: c.cfg.Clients,
		Start: c.start, Starts: c.memory.Before(c.start), Lease: c.lease,
	})
	retry := retryFirst
	for {
		answer, err := c.askRegister(request)
		switch {
		case err != nil:
			c.log.Debug("no leader registers this node yet", "error", err)
			retry = min(2*retry, retryLast)
			if !c.pause(retry) {
				return
			}
			continue
		case answer.WaitMS > 0:
			if !c.pause(min(time.Duration(answer.WaitMS)*time.Millisecond, requestWait)) {
				return
			}
			continue
		}
		retry = retryFirst
		if err := refusal(&answer); err != nil {
			c.old.Store(errors.Is(err, ErrOldDisk))
			c.fail(err)
			return
		}
		done, err := c.enrolled(answer)
		if err != nil {
			c.fail(err)
		}
		if done || err != nil || c.ctx.Err() != nil {
			return
		}
	}
}

func (c *Control) askRegister(request []byte) (admission, error) {
	ctx, cancel := context.WithTimeout(c.ctx, requestWait)
	defer cancel()
	msg, err := c.nc.RequestWithContext(ctx, subjectRegister, request)
	if err != nil {
		return admission{}, err
	}
	return decodeMessage[admission](msg.Data)
}

// refusal is why the leader will not register this node.
func refusal(a *admission) error {
	switch {
	case a.Duplicate:
		return fmt.Errorf("%w (%s)", ErrDuplicate, a.Problem)
	case a.Kind == "":
		return nil
	}
	err := shared.Result{Kind: a.Kind, Problem: a.Problem}.Err()
	switch {
	case errors.Is(err, shared.ErrRemoved):
		return fmt.Errorf("%w: %w", ErrRemoved, err)
	case errors.Is(err, shared.ErrLease):
		return fmt.Errorf("%w: %w", ErrLease, err)
	case errors.Is(err, shared.ErrOldDisk):
		return fmt.Errorf("%w: %w", ErrOldDisk, err)
	}
	return fmt.Errorf("%w: %w", ErrRefused, err)
}

// enrolled waits until the registration is applied here, and makes this node the one that it says. It gives up after some
// time, since the leader that has to send the log may be gone.
func (c *Control) enrolled(a admission) (bool, error) {
	timer := time.NewTimer(requestWait)
	defer timer.Stop()
	for {
		changed := c.bell.wait()
		if state := c.State(); state.Change >= a.Change {
			n := state.NodeByID(c.cfg.Identifier)
			switch {
			case n == nil:
				return false, ErrRemoved
			case n.Raft != c.store.RaftID():
				return false, ErrDuplicate
			}
			return true, c.become(n)
		}
		select {
		case <-changed:
		case <-timer.C:
			return false, nil
		case <-c.ctx.Done():
			return false, nil
		}
	}
}

// become makes this node the registered one: it hears what is sent to its number, and asks for leases.
func (c *Control) become(n *shared.Node) error {
	if err := c.started(n); err != nil {
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
