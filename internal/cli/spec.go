package cli

import (
	"context"
	"encoding/json"
	"time"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/subjects"
)

// LockSpec says which lock is wanted, and how.
type LockSpec struct {
	Name   string // 1 to 4096 bytes
	Shared bool
	Slots  int // of a semaphore; 0 for none
	Take   int // slots of it

	Try     bool           // once, without waiting
	Wait    *time.Duration // how long to wait; nil for as long as it takes
	TTL     *time.Duration // limit of the hold; nil for the broker's default
	Grace   *time.Duration // nil for the broker's default
	Lease   time.Duration  // of the session; 0 for the broker's default
	Drain   subjects.Drain
	Settle  time.Duration // quiet time of the drain timed
	Acks    subjects.Acks
	Static  bool
	Holder  string
	Data    []byte // JSON; nil for none
	Session string // token of a session of the caller's own; acquire only
	Request string // idempotency id; acquire only
}

// Validate finds what does not fit together; the broker checks the rest.
func (s *LockSpec) Validate() error {
	switch {
	case s.Name == "" || len(s.Name) > subjects.MaxName:
		return usagef("the name of a lock has 1 to %d bytes, this one has %d", subjects.MaxName, len(s.Name))
	case s.Shared && s.Slots > 0:
		return usagef("a lock is either --shared or has --slots")
	case s.Slots < 0 || s.Slots > subjects.MaxSlots:
		return usagef("--slots is 1 to %d", subjects.MaxSlots)
	case s.Slots == 0 && s.Take != 1:
		return usagef("--take is about a semaphore: say how many --slots it has")
	case s.Slots > 0 && (s.Take < 1 || s.Take > s.Slots):
		return usagef("--take is 1 to as many --slots as there are (%d)", s.Slots)
	case (s.Drain == subjects.Timed) != (s.Settle > 0):
		return usagef("--drain timed and --quiet-time DURATION go together")
	case s.Try && s.Wait != nil && *s.Wait > 0:
		return usagef("--nonblock waits not at all, --wait does: use one of them")
	case s.Data != nil && !json.Valid(s.Data):
		return usagef(`--data is JSON, such as '{"job":7}' or '"text"'`)
	}
	return nil
}

// try says whether to try only once; a wait of nothing is that too, as with flock.
func (s *LockSpec) try() bool { return s.Try || s.Wait != nil && *s.Wait == 0 }

// clientOptions are for the connection.
func (s *LockSpec) clientOptions() []client.Option {
	var opts []client.Option
	if s.Lease > 0 {
		opts = append(opts, client.WithLease(s.Lease))
	}
	if s.Holder != "" {
		opts = append(opts, client.WithName(s.Holder))
	}
	return opts
}

// lockOptions are for the lock.
func (s *LockSpec) lockOptions() []client.LockOption {
	opts := []client.LockOption{client.WithDrain(s.Drain, s.Settle), client.WithAcks(s.Acks)}
	if s.Static {
		opts = append(opts, client.WithStatic())
	}
	if s.TTL != nil {
		opts = append(opts, client.WithTTL(*s.TTL))
	}
	if s.Grace != nil {
		opts = append(opts, client.WithGrace(*s.Grace))
	}
	if s.Data != nil {
		opts = append(opts, client.WithData(json.RawMessage(s.Data)))
	}
	return opts
}

// take takes the lock through c. It waits, if it shall, until ctx ends.
func (s *LockSpec) take(ctx context.Context, c *client.Client) (*client.Claim, error) {
	opts, try := s.lockOptions(), s.try()
	switch {
	case s.Slots > 0 && try:
		return c.Semaphore(s.Name, s.Slots, opts...).TryAcquire(ctx, s.Take)
	case s.Slots > 0:
		return c.Semaphore(s.Name, s.Slots, opts...).Acquire(ctx, s.Take)
	case s.Shared && try:
		return c.RWMutex(s.Name, opts...).TryRLock(ctx)
	case s.Shared:
		return c.RWMutex(s.Name, opts...).RLock(ctx)
	case try:
		return c.Mutex(s.Name, opts...).TryLock(ctx)
	default:
		return c.Mutex(s.Name, opts...).Lock(ctx)
	}
}

// request is the acquire for it, for a lock that nobody keeps alive.
func (s *LockSpec) request() *subjects.Request {
	req := &subjects.Request{
		Op: subjects.OpAcquire, Name: s.Name, Drain: s.Drain, Quiet: s.Settle, Acks: s.Acks, Holder: s.Holder, Data: s.Data,
		Session: s.Session, RequestID: s.Request,
	}
	switch {
	case s.Slots > 0:
		req.Mode, req.Slots, req.Take = subjects.Semaphore, uint32(s.Slots), uint32(s.Take)
	case s.Shared:
		req.Mode = subjects.Shared
	}
	if s.Static {
		req.Kind = subjects.Static
	}
	if s.TTL != nil {
		req.TTL, req.Has = *s.TTL, req.Has|subjects.HasTTL
	}
	if s.Grace != nil {
		req.Grace, req.Has = *s.Grace, req.Has|subjects.HasGrace
	}
	if s.Wait != nil {
		req.Wait, req.Has = *s.Wait, req.Has|subjects.HasWait
	}
	return req
}
