package chaos

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/internal/check"
	"github.com/opencluster/oclocks/subjects"
)

// bystander looks at locks and at fencing tokens, and forces a holder out now and then.
func (a *actor) bystander(ctx context.Context) error {
	for ctx.Err() == nil {
		c, err := a.connect(ctx, []*actor{a})
		if err != nil {
			return err
		}
		for left := 100 + a.rng.IntN(400); left > 0 && ctx.Err() == nil; left-- {
			a.glance(ctx, c)
			a.pause(ctx, 30*time.Millisecond)
		}
		a.close(c)
	}
	return nil
}

// glance asks about one lock.
func (a *actor) glance(ctx context.Context, c *client.Client) {
	bounded, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	kinds := []string{"mutex", "rw", "semaphore", "plain"}
	name, since := a.lock(kinds[a.rng.IntN(len(kinds))]), boottime.Now()
	record, err := c.Query(bounded, name)
	if err != nil {
		return // a question that is not answered tells nothing
	}
	a.tell(seen(record, since))
	if len(record.Holders) == 0 {
		return
	}
	token := record.Holders[a.rng.IntN(len(record.Holders))].Token
	switch one := a.rng.Float64(); {
	case one < 0.1:
		a.list(bounded, c)
	case one < 0.3:
		since := boottime.Now()
		if answer, err := c.Check(bounded, name, token); err == nil {
			a.tell(check.Event{Kind: check.Checked, Name: name, Token: token, Since: since, Current: answer.Current,
				Newest: answer.Newest, Oldest: answer.Oldest})
		}
	case one < 0.4:
		a.pause(bounded, 200*time.Millisecond)
		if a.stillHeld(bounded, c, name, token) { // an administrator does not force out who has just come
			a.force(bounded, c, name, token)
		}
	}
}

// list looks at all locks of one kind.
func (a *actor) list(ctx context.Context, c *client.Client) {
	since := boottime.Now()
	page, err := c.List(ctx, &subjects.Request{Prefix: "semaphore-", Has: subjects.HasPrefix})
	if err != nil {
		return
	}
	for i := range page.Locks {
		a.tell(seen(&page.Locks[i], since))
	}
}

// stillHeld asks once more.
func (a *actor) stillHeld(ctx context.Context, c *client.Client, name string, token uint64) bool {
	since := boottime.Now()
	record, err := c.Query(ctx, name)
	if err != nil {
		return false
	}
	a.tell(seen(record, since))
	return slices.ContainsFunc(record.Holders, func(h subjects.Holder) bool { return h.Token == token })
}

func (a *actor) force(ctx context.Context, c *client.Client, name string, token uint64) {
	event := check.Event{Kind: check.Ask, Op: subjects.OpForce, Request: a.request(), Name: name, Token: token, Now: a.chance(0.5)}
	a.tell(event)
	answer, err := c.Force(ctx, name, token, "chaos", event.Now)
	var r *subjects.Refusal
	switch {
	case err == nil:
		a.tell(check.Event{Kind: check.Answer, Request: event.Request, Code: 200, Token: answer.Token, Ended: answer.Ended})
	case errors.As(err, &r) && r.Code != 503:
		a.tell(check.Event{Kind: check.Answer, Request: event.Request, Code: r.Code, Reason: r.Reason, Why: r.Why})
	default:
		a.tell(check.Event{Kind: check.GiveUp, Request: event.Request})
	}
}

// seen is what a record shows.
func seen(r *subjects.Record, since int64) check.Event {
	e := check.Event{Kind: check.Seen, Name: r.Name, Since: since, Part: r.More > 0 || r.Waiting > len(r.Queue)}
	for _, h := range r.Holders {
		e.Holders = append(e.Holders, check.Holder{Token: h.Token, Client: h.Holder})
	}
	for _, w := range r.Queue {
		e.Queue = append(e.Queue, check.Waiter{Ticket: w.Ticket, Client: w.Holder})
	}
	return e
}
