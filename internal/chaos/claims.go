package chaos

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/internal/check"
	"github.com/opencluster/oclocks/subjects"
)

// What the clients of the library do: they take locks, believe in them and give them back.

// slots of every semaphore.
const slots = 5

// longestWait is what the library's Lock asks for: it leaves the queue itself when its context ends.
const longestWait = 24 * time.Hour

// look is how often a holder asks whether it still holds.
const look = 5 * time.Millisecond

// taking is one way to ask for a lock.
type taking struct {
	event check.Event // its Ask
	limit time.Duration
	take  func(context.Context) (*client.Claim, error)
}

// choice chooses what a worker asks for next. It is given an event with what is the same for every kind of lock.
type choice func(*actor, *client.Client, []client.LockOption, check.Event) taking

func (a *actor) mutex(c *client.Client, opts []client.LockOption, event check.Event) taking {
	event.Name = a.lock("mutex")
	m := c.Mutex(event.Name, opts...)
	if a.chance(0.3) {
		return taking{event, 0, m.TryLock}
	}
	return taking{event, longestWait, m.Lock}
}

func (a *actor) rwmutex(c *client.Client, opts []client.LockOption, event check.Event) taking {
	event.Name = a.lock("rw")
	write, try := a.chance(0.3), a.chance(0.2)
	if !write {
		event.Mode = subjects.Shared
	} else if a.chance(0.3) {
		event.Drain = subjects.Soft
		opts = append(opts, client.WithDrain(subjects.Soft, 0))
	}
	rw := c.RWMutex(event.Name, opts...)
	switch {
	case write && try:
		return taking{event, 0, rw.TryLock}
	case write:
		return taking{event, longestWait, rw.Lock}
	case try:
		return taking{event, 0, rw.TryRLock}
	}
	return taking{event, longestWait, rw.RLock}
}

func (a *actor) semaphore(c *client.Client, opts []client.LockOption, event check.Event) taking {
	event.Name, event.Mode, event.Slots, event.Take = a.lock("semaphore"), subjects.Semaphore, slots, uint32(1+a.rng.IntN(3)) //nolint:gosec // small
	s := c.Semaphore(event.Name, slots, opts...)
	if a.chance(0.3) {
		return taking{event, 0, func(ctx context.Context) (*client.Claim, error) { return s.TryAcquire(ctx, int(event.Take)) }}
	}
	return taking{event, longestWait, func(ctx context.Context) (*client.Claim, error) { return s.Acquire(ctx, int(event.Take)) }}
}

// sprint is how many requests a worker makes without a pause when it is in a hurry: its client opens lanes then, which are used as long as
// its connection is.
const sprint = 200

// claims has workers take locks, one after the other, until ctx ends, with one client for all of them: a single worker, or a crowd. A
// connection is used for a while, and then another one. Each worker has its own choice of the choices.
func claims(ctx context.Context, workers []*actor, choices ...choice) error {
	lead := workers[0]
	for first := true; ctx.Err() == nil; first = false {
		var opts []client.Option
		if lead.chance(0.5) {
			opts = append(opts, client.WithLease(lead.between(time.Second, 6*time.Second)))
		}
		c, err := lead.connect(ctx, workers, opts...)
		if err != nil {
			return err
		}
		hurry, calm := first || lead.chance(0.2), 50+lead.rng.IntN(400)
		var all sync.WaitGroup
		for i, a := range workers {
			a.hurry = hurry
			all.Go(func() { a.use(ctx, c, calm, choices[i%len(choices)]) })
		}
		all.Wait()
		lead.close(c)
	}
	return nil
}

// use takes locks with a client, so often in calm, after a sprint if the worker is in a hurry.
func (a *actor) use(ctx context.Context, c *client.Client, calm int, choose choice) {
	for end := a.next + sprint; a.hurry && a.next < end && ctx.Err() == nil; {
		a.once(ctx, c, choose)
	}
	for a.hurry = false; calm > 0 && ctx.Err() == nil; calm-- {
		if a.drum == nil {
			a.once(ctx, c, choose)
			a.pause(ctx, 15*time.Millisecond)
			continue
		}
		a.hurry = a.chance(0.5) // or most of the crowd would stand in queues most of the time
		a.once(ctx, c, choose)
		a.drum.wait(ctx, time.Duration(float64(beat)*a.Pace))
	}
}

// close closes a connection. Everything was released before, or is not believed in.
func (a *actor) close(c *client.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	c.Close(ctx) // what is left ends with its lease
}

// once takes a lock, and what follows from it.
func (a *actor) once(ctx context.Context, c *client.Client, choose choice) {
	event := check.Event{Kind: check.Ask, Op: subjects.OpAcquire, Request: a.request(), Hold: subjects.Connection, Grace: -1}
	opts := []client.LockOption{client.WithHolder(a.id)}
	if a.chance(0.25) {
		event.Hold, event.TTL = subjects.Static, a.between(2*time.Second, 8*time.Second)
		opts = append(opts, client.WithStatic(), client.WithTTL(event.TTL))
	} else if a.chance(0.2) {
		event.TTL = a.between(2*time.Second, 8*time.Second)
		opts = append(opts, client.WithTTL(event.TTL))
	}
	t := choose(a, c, opts, event)
	t.event.Wait = t.limit
	patience := a.between(3*time.Second, 25*time.Second)
	if a.chance(0.1) {
		patience = a.between(10*time.Millisecond, 300*time.Millisecond) // gives up soon
	}
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	a.tell(t.event)
	a.await(t.event.Request, t.event.Name)
	claim, err := t.take(bounded)
	a.await("", "")
	if err != nil {
		a.refused(t.event.Request, err)
		return
	}
	g := claim.Grant()
	a.tell(check.Event{Kind: check.Answer, Request: t.event.Request, Code: 200, Token: g.Token, Ticket: g.Ticket, Key: g.Key,
		TTL: g.TTL, Lease: g.Lease, Weak: !g.Durable})
	a.hold(ctx, claim)
}

// refused tells of an answer that is an error, or that there was none.
func (a *actor) refused(request string, err error) {
	var r *subjects.Refusal
	if errors.As(err, &r) && r.Code != 503 && !errors.Is(err, client.ErrLost) && !errors.Is(err, client.ErrUnavailable) {
		a.tell(check.Event{Kind: check.Answer, Request: request, Code: r.Code, Reason: r.Reason, Why: r.Why})
		return
	}
	a.tell(check.Event{Kind: check.GiveUp, Request: request})
}

// hold believes in a claim for a while, and releases it.
func (a *actor) hold(ctx context.Context, claim *client.Claim) {
	long := a.between(0, 30*time.Millisecond)
	if a.hurry {
		long = 0
	} else if a.chance(0.03) {
		long = a.between(500*time.Millisecond, 8*time.Second)
	}
	renewAt := check.Never
	if a.chance(0.2) {
		renewAt = boottime.Now() + int64(long/2)
	}
	until := int64(0)
	tick := time.NewTicker(look)
	defer tick.Stop()
	for end := boottime.Now() + int64(long); ; {
		if until = a.believe(claim, until); until == 0 {
			a.lost(claim)
			break
		}
		if boottime.Now() >= renewAt {
			renewAt = check.Never
			a.renew(ctx, claim)
		}
		if boottime.Now() >= end || ctx.Err() != nil {
			break
		}
		select {
		case <-tick.C:
		case <-claim.Done():
		case <-ctx.Done():
		}
	}
	a.release(claim, until > 0)
}

// believe tells until when the client believes, if that is later than what it told last. It gives that time; 0: no more.
func (a *actor) believe(claim *client.Claim, told int64) int64 {
	before := boottime.Now()
	left := claim.Deadline()
	if s := claim.State(); s == client.Lost || s == client.Released || left == 0 {
		return 0
	}
	until := before + int64(left)
	if left < 0 {
		until = check.Never
	}
	if until <= told+int64(time.Millisecond) {
		return max(told, 1)
	}
	a.tell(check.Event{Kind: check.Believe, Name: claim.Name(), Token: claim.Token(), Until: until})
	return until
}

// lost tells that the client believes no more, and if only the broker can have said why, that too.
func (a *actor) lost(claim *client.Claim) {
	e := check.Event{Kind: check.Disbelieve, Name: claim.Name(), Token: claim.Token()}
	var r *subjects.Refusal
	if errors.As(claim.Err(), &r) {
		switch r.Why {
		case subjects.WhyForced, subjects.WhySuperseded, subjects.WhyClosed:
			e.Kind, e.Why = check.Lost, r.Why
		}
	}
	a.tell(e)
}

func (a *actor) renew(ctx context.Context, claim *client.Claim) {
	request := a.request()
	bounded, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	a.tell(check.Event{Kind: check.Ask, Op: subjects.OpRenew, Request: request, Name: claim.Name(), Token: claim.Token()})
	if err := claim.Renew(bounded); err != nil {
		a.refused(request, err)
		return
	}
	g := claim.Grant()
	a.tell(check.Event{Kind: check.Answer, Request: request, Code: 200, Token: g.Token, Ticket: g.Ticket, Key: g.Key,
		TTL: g.TTL, Lease: g.Lease, Weak: !g.Durable})
}

// release gives a claim back, also one that was lost: that confirms that its holder has stopped, but what the library says of it is
// no answer of the broker.
func (a *actor) release(claim *client.Claim, believed bool) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	request := a.request()
	a.tell(check.Event{Kind: check.Ask, Op: subjects.OpRelease, Request: request, Name: claim.Name(), Token: claim.Token()})
	if err := claim.Release(ctx); err != nil || !believed {
		a.tell(check.Event{Kind: check.GiveUp, Request: request})
		return
	}
	a.tell(check.Event{Kind: check.Answer, Request: request, Code: 200, Token: claim.Token()})
}
