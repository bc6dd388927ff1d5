package control

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker/control/desk"
	"github.com/opencluster/oclocks/broker/control/enrol"
	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/internal/boottime"
)

// Limits of what waits for a callback, so that a node that is flooded drops messages instead of growing.
const (
	pendingMessages = 16384
	pendingBytes    = 64 << 20
)

// listen subscribes to what every node hears.
func (c *Control) listen() error {
	for _, s := range []struct {
		subject string
		handle  nats.MsgHandler
	}{
		{subjectRaft(c.store.RaftID()), c.onRaft},
		{subjectHere(c.cfg.Identifier), func(m *nats.Msg) { c.reply(m, hello{Identifier: c.cfg.Identifier, Start: c.start}) }},
		{subjectStatus, func(m *nats.Msg) { c.answer(m, func(context.Context) any { return c.Status() }) }},
		{subjectStarts, c.onStarts},
		{subjectAway, func(m *nats.Msg) { receive[farewell](c, m) }},
		{subjectAlerts, c.onAlert},
	} {
		if err := c.subscribe(s.subject, s.handle); err != nil {
			return err
		}
	}
	return nil
}

// listenAs subscribes to what the node with this number hears.
func (c *Control) listenAs(number uint64) error {
	if err := c.subscribe(subjectOrder(number), func(m *nats.Msg) { receive[order](c, m) }); err != nil {
		return err
	}
	return c.subscribe(subjectHello(number), func(m *nats.Msg) { receive[hello](c, m) })
}

func (c *Control) subscribe(subject string, handle nats.MsgHandler) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return ErrClosed
	}
	sub, err := subscribe(c.nc, subject, handle)
	if err != nil {
		return err
	}
	c.subs = append(c.subs, sub)
	return nil
}

func subscribe(nc *nats.Conn, subject string, handle nats.MsgHandler) (*nats.Subscription, error) {
	sub, err := nc.Subscribe(subject, handle)
	if err == nil {
		err = sub.SetPendingLimits(pendingMessages, pendingBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("subscribe to %s: %w", subject, err)
	}
	return sub, nil
}

func (c *Control) onRaft(m *nats.Msg) {
	from, body, err := unframe(m.Data)
	if err != nil {
		c.log.Warn("a frame that cannot be read", "error", err)
		return
	}
	c.arb.Receive(from, body)
	if c.anyAway.Load() {
		c.box.put(desk.Heard{Raft: from})
	}
}

func (c *Control) onStarts(m *nats.Msg) {
	if question, err := decodeMessage[startQuestion](m.Data); err == nil {
		status := c.arb.Status()
		c.reply(m, enrol.LastStart(question, c.State(), &status))
	}
}

// receive reads a message and gives it to the desk.
func receive[T desk.Event](c *Control, m *nats.Msg) {
	message, err := decodeMessage[T](m.Data)
	if err != nil {
		c.log.Warn("another node sends what cannot be read", "subject", m.Subject, "error", err)
		return
	}
	c.box.put(message)
}

// reply answers a request, if it wants an answer.
func (c *Control) reply(m *nats.Msg, message any) {
	if m.Reply != "" {
		c.post.send(m.Reply, encode(message))
	}
}

// answer answers a request on a goroutine of its own, a few at a time; the others are not answered, and asked again.
func (c *Control) answer(m *nats.Msg, do func(context.Context) any) {
	select {
	case c.answering <- struct{}{}:
	default:
		return
	}
	started := c.spawn(func() {
		defer func() { <-c.answering }()
		ctx, cancel := context.WithTimeout(c.ctx, requestWait)
		defer cancel()
		c.reply(m, do(ctx))
	})
	if !started {
		<-c.answering
	}
}

// spawn starts a goroutine that Close waits for, unless Close has begun.
func (c *Control) spawn(do func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.over {
		c.running.Go(do)
	}
	return !c.over
}

// Change carries out a command of a tool; Result.Err says if it was refused. ErrUnavailable: the outcome is not known, since
// there was no leader in time. What only leaders propose is no command of tools.
func (c *Control) Change(ctx context.Context, command shared.Command) (shared.Result, error) {
	text, err := encodeCommand(command)
	if err != nil {
		return shared.Result{}, err
	}
	return c.carryOut(ctx, &command, text)
}

// carryOut proposes a command of a tool in its own bytes.
func (c *Control) carryOut(ctx context.Context, command *shared.Command, text []byte) (shared.Result, error) {
	if command.Views != nil || command.Register != nil || command.Found != nil || command.Lead != nil ||
		command.Outlived != nil || command.Raise != nil {
		return shared.Result{}, fmt.Errorf("%w: not a command of a tool", shared.ErrCommand)
	}
	_, result, err := c.arb.Propose(ctx, text)
	if err != nil {
		return shared.Result{}, c.explain(err)
	}
	r, ok := result.(shared.Result)
	if !ok {
		return shared.Result{}, fmt.Errorf("%w: the result is lost", ErrUnavailable)
	}
	return r, nil
}

// encodeCommand is Command.Encode with an error in place of a panic, for what comes from outside.
func encodeCommand(command shared.Command) (text []byte, err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("%w: exactly one operation is expected", shared.ErrCommand)
		}
	}()
	return command.Encode(), nil
}

// change carries out a command that came over the network. It is read as strictly as when it is applied: what this program does not
// know of it would be lost, and something else done than was asked for.
func (c *Control) change(ctx context.Context, data []byte) changed {
	command, err := shared.Decode(data, c.State().AppliedBy())
	if err != nil {
		return changed{Result: shared.Refused(err)}
	}
	result, err := c.carryOut(ctx, &command, data)
	switch {
	case errors.Is(err, shared.ErrCommand):
		return changed{Result: shared.Refused(err)}
	case err != nil:
		return changed{Unavailable: err.Error()}
	}
	return changed{Result: result}
}

// Status is this node now.
func (c *Control) Status() Status {
	raft := c.arb.Status()
	state, digest := c.fsm.Newest()
	c.mu.Lock()
	s := Status{
		Identifier: c.cfg.Identifier, Number: c.self.Number, Life: c.self.Life, Name: c.cfg.Name, Location: c.cfg.Location,
		Raft: c.store.RaftID(), Term: raft.Term, Leading: raft.Leading, Change: state.Change, Digest: digest,
		Live: c.granted.Live, Refused: c.refusal, Leaving: c.leaving,
	}
	until := c.granted.Until
	c.mu.Unlock()
	s.Lease = max(0, time.Duration(until-boottime.Now()))
	if n := state.NodeByRaft(raft.Leader); n != nil {
		s.Leader = n.Number
	}
	if n := state.NodeByID(c.cfg.Identifier); n != nil {
		s.Name, s.Location = n.Name, n.Location
	}
	s.Voter = slices.Contains(raft.Voters, s.Raft)
	s.Away = c.seen.Load().list()
	if c.cfg.Describe != nil {
		s.Copies = c.cfg.Describe()
	}
	return s
}
