package client

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/nats-io/nuid"

	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/internal/machine"
	"github.com/opencluster/oclocks/subjects"
)

// This file has the operations of the protocol one by one, for tools. They know nothing of claims: what Acquire takes here
// is kept alive by nobody, so it should be static. All repeat the request until it is answered or ctx ends.

// decoder is an answer that reads its own JSON.
type decoder interface {
	DecodeJSON([]byte) error
}

// ask sends a request as it is and reads the answer into out.
func (c *Client) ask(ctx context.Context, req *subjects.Request, out decoder) error {
	result, err := c.askRaw(ctx, req)
	if err != nil {
		return err
	}
	if err := out.DecodeJSON(result.Data); err != nil {
		return fmt.Errorf("%s: read the answer: %w", doing(req.Op.String(), req.Name), err)
	}
	return nil
}

// askRaw sends a request as it is. What changes something outside a session gets an id, so that it can be repeated.
func (c *Client) askRaw(ctx context.Context, req *subjects.Request) (machine.Result, error) {
	w := c.lend()
	w.req, w.call.Raw = *req, true
	sent, op, name := &w.req, req.Op, req.Name
	switch op {
	case subjects.OpAcquire, subjects.OpRelease, subjects.OpRenew, subjects.OpForce:
		if sent.Session == "" && sent.RequestID == "" {
			sent.RequestID = nuid.Next()
			sent.Has |= subjects.HasRequest
		}
	}
	result, err := c.await(ctx, w)
	switch {
	case err != nil:
		return result, fmt.Errorf("%s: %w", doing(op.String(), name), err)
	case result.Refusal != nil || result.Err != nil:
		return result, failed(op.String(), name, result)
	}
	return result, nil
}

// Acquire sends an acquire as it is and gives the grant. With Wait set, the request stays open until the lock is granted or
// the wait is over (ErrTimeout); when ctx ends it is cancelled in the background. With Enqueue use Enqueue.
func (c *Client) Acquire(ctx context.Context, req *subjects.Request) (*subjects.Grant, error) {
	acquire := *req
	acquire.Op, acquire.Enqueue = subjects.OpAcquire, false
	result, err := c.askRaw(ctx, &acquire)
	if err != nil {
		return nil, err
	}
	return result.Grant, nil
}

// Enqueue sends an acquire that is answered with a ticket at once; the grant comes as an event of its session, which the
// request must name.
func (c *Client) Enqueue(ctx context.Context, req *subjects.Request) (*subjects.Queued, error) {
	acquire := *req
	acquire.Op, acquire.Enqueue = subjects.OpAcquire, true
	return get(ctx, c, &acquire, new(subjects.Queued))
}

// get is ask for those who return the answer.
func get[T decoder](ctx context.Context, c *Client, req *subjects.Request, out T) (T, error) {
	if err := c.ask(ctx, req, out); err != nil {
		var none T
		return none, err
	}
	return out, nil
}

// Release releases the hold of a name that a key opens, with a text for the history ("" for none).
func (c *Client) Release(ctx context.Context, name string, key uint64, outcome string) (*subjects.Released, error) {
	req := &subjects.Request{Op: subjects.OpRelease, Name: name, Key: key, Outcome: outcome}
	return get(ctx, c, req, new(subjects.Released))
}

// RenewOption says more about a Renew.
type RenewOption func(*renewing)

type renewing struct {
	trusted bool
	left    time.Duration // of the trust, from the call on
}

// TrustedFor says that the caller trusts its lock, has done so without a break since its grant, and may do so for the time left
// from now on if nothing more is heard: until the sending of the acquire or of the last renew that was answered in time, plus 3/4
// of the limit that the answer told (docs/protocol.md, "Trust"). Only the process that has counted that may say it, and never
// one that knows the key alone.
//
// It is what keeps the trust in a lock through the recovery of its bucket: until that is over, a renew without it is refused
// (503, why recovery), since somebody else may have got the lock in a history that the broker has lost. Renew ends when the trust
// does, with ErrLost: an answer that comes later proves nothing, whenever the request was sent. The lock may be there all the same:
// a Renew without TrustedFor that is granted begins a trust of its own.
func TrustedFor(left time.Duration) RenewOption {
	return func(r *renewing) { r.trusted, r.left = true, left }
}

// errTrustOver is the ErrLost of a Renew with TrustedFor.
var errTrustOver = fmt.Errorf("%w: it was not renewed before the trust in it was over", ErrLost)

// Renew counts the time limit of a hold anew; ttl, if it is not nil, replaces it, and data, if it is not nil, the hold's
// data (JSON text). When it is granted, the caller may trust the lock for 3/4 of the grant's TTL from the call of Renew on. In a
// recovery it is refused without TrustedFor until that is over, and keeps the hold meanwhile.
func (c *Client) Renew(ctx context.Context, name string, key uint64, ttl *time.Duration, data []byte, opts ...RenewOption) (*subjects.Grant, error) {
	req := &subjects.Request{Op: subjects.OpRenew, Name: name, Key: key, Data: data}
	if ttl != nil {
		req.TTL, req.Has = *ttl, subjects.HasTTL
	}
	var r renewing
	for _, opt := range opts {
		opt(&r)
	}
	if !r.trusted {
		result, err := c.askRaw(ctx, req)
		return result.Grant, err
	}
	end := boottime.Now() + int64(r.left)
	if r.left <= 0 {
		return nil, fmt.Errorf("%s: %w", doing("renew", name), errTrustOver)
	}
	req.Trusted = true
	ctx, cancel := context.WithTimeoutCause(ctx, r.left, errTrustOver)
	defer cancel()
	result, err := c.askRaw(ctx, req)
	if err == nil && boottime.Now() >= end { // the context's clock stands still while the machine sleeps
		err = fmt.Errorf("%s: %w", doing("renew", name), errTrustOver)
	}
	if err != nil {
		return nil, err
	}
	return result.Grant, nil
}

// Cancel takes back an acquire by its name and request id: a waiting one leaves the queue, a granted one is released, and
// one that was not seen yet will be refused. session is that of the acquire, "" if it had none; in a session the request is
// a number.
func (c *Client) Cancel(ctx context.Context, name, session, request string) (*subjects.Cancelled, error) {
	req := &subjects.Request{Op: subjects.OpCancel, Name: name, Session: session, RequestID: request}
	return get(ctx, c, req, new(subjects.Cancelled))
}

// Query tells who holds a lock and who waits.
func (c *Client) Query(ctx context.Context, name string) (*subjects.Record, error) {
	return get(ctx, c, &subjects.Request{Op: subjects.OpQuery, Name: name}, new(subjects.Record))
}

// List gives one page of the locks; req has the prefix, the filters, and After from the page before.
func (c *Client) List(ctx context.Context, req *subjects.Request) (*subjects.Page, error) {
	list := *req
	list.Op = subjects.OpList
	return get(ctx, c, &list, new(subjects.Page))
}

// ListAll gives all locks that match, page by page. It ends after the first error.
func (c *Client) ListAll(ctx context.Context, req *subjects.Request) iter.Seq2[subjects.Record, error] {
	return func(yield func(subjects.Record, error) bool) {
		list := *req
		for {
			page, err := c.List(ctx, &list)
			if err != nil {
				yield(subjects.Record{}, err)
				return
			}
			for _, record := range page.Locks {
				if !yield(record, nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			list.After = page.Next
		}
	}
}

// Force ends the hold of a name that has the token, after its holder has confirmed or its lease is over; with now at once,
// although its holder may still trust it. It needs the role admin.
func (c *Client) Force(ctx context.Context, name string, token uint64, reason string, now bool) (*subjects.Forced, error) {
	req := &subjects.Request{Op: subjects.OpForce, Name: name, Token: token, Reason: reason, Now: now}
	return get(ctx, c, req, new(subjects.Forced))
}

// Check asks for a resource whether a fencing token is current, and from which token on tokens are valid.
func (c *Client) Check(ctx context.Context, name string, token uint64) (*subjects.Checked, error) {
	return get(ctx, c, &subjects.Request{Op: subjects.OpCheck, Name: name, Token: token}, new(subjects.Checked))
}

// Info describes the broker and the zone.
func (c *Client) Info(ctx context.Context) (*subjects.Info, error) {
	return get(ctx, c, &subjects.Request{Op: subjects.OpInfo}, new(subjects.Info))
}

// Servers lists the nodes, those nearest to location ("" for the client's own, WithLocation) first.
func (c *Client) Servers(ctx context.Context, location string) (*subjects.Servers, error) {
	if location == "" {
		location = c.opts.location
	}
	return get(ctx, c, &subjects.Request{Op: subjects.OpServers, Location: location}, new(subjects.Servers))
}

// Pong is a node's answer to a ping and how long it took.
type Pong struct {
	subjects.Pong
	RTT time.Duration
}

// Ping measures the response time of a node ("" for any).
func (c *Client) Ping(ctx context.Context, node string) (*Pong, error) {
	began := time.Now()
	pong := &Pong{}
	if err := c.ask(ctx, &subjects.Request{Op: subjects.OpPing, Node: node}, &pong.Pong); err != nil {
		return nil, err
	}
	pong.RTT = time.Since(began)
	return pong, nil
}

// OpenSession opens a session, or comes back as an earlier one (Secret), that this client does not keep alive; use it for
// what a tool does by hand. req may set Secret, TTL, Location, Holder, Server and CID.
func (c *Client) OpenSession(ctx context.Context, req *subjects.Request) (*subjects.Opened, error) {
	open := *req
	open.Op = subjects.OpSessionOpen
	return get(ctx, c, &open, new(subjects.Opened))
}

// CloseSession ends a session by its token and releases what it holds.
func (c *Client) CloseSession(ctx context.Context, session string) (*subjects.SessionClosed, error) {
	req := &subjects.Request{Op: subjects.OpSessionClose, Session: session}
	return get(ctx, c, req, new(subjects.SessionClosed))
}

// KeepSession sends one keep-alive of a session by its token. With several nodes, the first answer counts.
func (c *Client) KeepSession(ctx context.Context, session string, beat uint64) (*subjects.Kept, error) {
	req := &subjects.Request{Op: subjects.OpKeep, Session: session, Beat: beat}
	return get(ctx, c, req, new(subjects.Kept))
}
