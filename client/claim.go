package client

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/opencluster/oclocks/internal/machine"
	"github.com/opencluster/oclocks/subjects"
)

// State is what may be believed of a claim.
type State = machine.State

// The states of a claim.
const (
	Held     = machine.Held     // trusted
	Suspect  = machine.Suspect  // trusted still, but a keep-alive or renewal is overdue
	Lost     = machine.Lost     // not trusted any more, for ever
	Released = machine.Released // given back
)

// Claim is one grant of a lock, from its Lock to its end. Its methods may be called from several goroutines.
type Claim struct {
	c      *Client
	hold   machine.Hold // guarded by c.mu, but for Grant's name, key and token
	done   chan struct{}
	err    error        // set before done is closed
	forget func(*Claim) // what the lock that tracks the claim wants to know when it is released; may be nil

	contexts []context.CancelCauseFunc // to end with the claim; guarded by c.mu
}

// Name is the lock's name.
func (cl *Claim) Name() string { return cl.hold.Grant.Name }

// Token is the fencing token: higher than that of every earlier grant of the name.
func (cl *Claim) Token() uint64 { return cl.hold.Grant.Token }

// Key is the unlock key, 16 hexadecimal digits: whoever has it can release the lock.
func (cl *Claim) Key() string { return fmt.Sprintf("%016x", cl.hold.Grant.Key) }

// Grant is the broker's grant, as of the newest renewal.
func (cl *Claim) Grant() subjects.Grant {
	cl.c.mu.Lock()
	defer cl.c.mu.Unlock()
	return cl.hold.Grant
}

// State is the state at this moment, also if the process was suspended until just now.
func (cl *Claim) State() (state State) {
	cl.c.do(func(now int64) {
		if state = cl.hold.State(now); state == Lost {
			cl.c.m.Tick(now) // for good, should the timer not have rung yet
		}
	})
	return state
}

// Deadline is how long the lock may be trusted from now on if nothing more is heard from the broker: 0 if no longer, and
// a negative number if for ever (a static lock without a time limit).
func (cl *Claim) Deadline() (left time.Duration) {
	cl.c.do(func(now int64) { left = cl.hold.Left(now) })
	return left
}

// Done is closed when the lock is lost or released.
func (cl *Claim) Done() <-chan struct{} { return cl.done }

// Err is nil while the lock may be trusted; then an error that matches ErrLost, with the *subjects.Refusal that says why,
// or ErrReleased.
func (cl *Claim) Err() error {
	if cl.State() == Held {
		return nil
	}
	select {
	case <-cl.done:
		return cl.err
	default:
		return nil
	}
}

// ended ends the claim. The caller holds c.mu.
func (cl *Claim) ended() {
	name, token := cl.hold.Grant.Name, cl.hold.Grant.Token
	cl.err = releasedError{name}
	if why := cl.hold.Why; why != nil {
		cl.err = &lostError{name: name, token: token, why: why}
		cl.c.opts.log.Warn("a lock is lost", "name", name, "token", token, "why", why.Why, "reason", why.Message)
	}
	close(cl.done)
	for _, cancel := range cl.contexts {
		if cancel != nil {
			cancel(cl.err)
		}
	}
	cl.contexts = nil
}

// releasedError says that a lock was released.
type releasedError struct{ name string }

// Error is `lock "orders/4711": the lock was released`.
func (e releasedError) Error() string { return doing("lock", e.name) + ": " + ErrReleased.Error() }

// Unwrap gives ErrReleased.
func (e releasedError) Unwrap() error { return ErrReleased }

// lostError says that a lock was lost and why.
type lostError struct {
	name  string
	token uint64
	why   *subjects.Refusal
}

// Error is `lock "orders/4711" (token 17) is lost: 410 lost (expired): …`.
func (e *lostError) Error() string {
	return fmt.Sprintf("lock %q (token %d) is lost: %v", e.name, e.token, e.why)
}

// Unwrap gives ErrLost and the refusal.
func (e *lostError) Unwrap() []error { return []error{ErrLost, e.why} }

// Context derives a context that ends when the lock is lost or released, with Err as its cause. Its cancel must be called.
func (cl *Claim) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	cl.c.mu.Lock()
	defer cl.c.mu.Unlock()
	select {
	case <-cl.done:
		cancel(cl.err)
		return ctx, func() {}
	default:
	}
	i := slices.IndexFunc(cl.contexts, func(f context.CancelCauseFunc) bool { return f == nil })
	if i < 0 {
		i, cl.contexts = len(cl.contexts), append(cl.contexts, nil)
	}
	cl.contexts[i] = cancel
	var once sync.Once
	return ctx, func() {
		cancel(context.Canceled)
		once.Do(func() {
			cl.c.mu.Lock()
			defer cl.c.mu.Unlock()
			if i < len(cl.contexts) {
				cl.contexts[i] = nil
			}
		})
	}
}

// Renew proves the lock at the broker and counts its time limit anew, if it has one.
func (cl *Claim) Renew(ctx context.Context) error {
	return cl.renew(ctx, &subjects.Request{})
}

// Extend is Renew with another time limit; 0 is none.
func (cl *Claim) Extend(ctx context.Context, ttl time.Duration) error {
	return cl.renew(ctx, &subjects.Request{TTL: ttl, Has: subjects.HasTTL})
}

// SetData is Renew with other data, which is encoded as JSON.
func (cl *Claim) SetData(ctx context.Context, v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode the data of lock %q: %w", cl.Name(), err)
	}
	return cl.renew(ctx, &subjects.Request{Data: data})
}

func (cl *Claim) renew(ctx context.Context, req *subjects.Request) error {
	w, ok := cl.c.lend(), false
	w.req = *req
	cl.c.doNow(func(now int64) { ok = cl.c.m.Renew(now, &cl.hold, &w.call) })
	if !ok {
		return fmt.Errorf("renew: %w", cl.err)
	}
	result, err := cl.c.awaitSubmitted(ctx, w)
	switch {
	case err != nil:
		return fmt.Errorf("renew %q: %w", cl.Name(), err)
	case result.Grant == nil:
		return failed("renew", cl.Name(), result)
	}
	return nil
}

// Release gives the lock back. The claim has ended when it returns, whatever it returns; should ctx end before the broker
// has confirmed, the release goes on in the background. For a lock that was lost it returns the loss (ErrLost), and
// ErrReleased for one that was released before.
func (cl *Claim) Release(ctx context.Context) error {
	return cl.release(ctx, "")
}

// ReleaseWith is Release with a text for the lock's history, 1024 bytes at most.
func (cl *Claim) ReleaseWith(ctx context.Context, outcome string) error {
	return cl.release(ctx, outcome)
}

func (cl *Claim) release(ctx context.Context, outcome string) error {
	if cl.forget != nil {
		cl.forget(cl)
	}
	w, was, ok := cl.c.lend(), Released, false
	cl.c.doNow(func(now int64) {
		was = cl.hold.State(now)
		ok = cl.c.m.Release(now, &cl.hold, outcome, &w.call)
	})
	if !ok {
		return cl.err
	}
	result, err := cl.c.awaitSubmitted(ctx, w)
	switch {
	case was == Lost:
		return cl.err
	case err != nil:
		return fmt.Errorf("release %q: %w", cl.Name(), err)
	case result.Data == nil:
		return failed("release", cl.Name(), result)
	}
	return nil
}
