package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/internal/check"
	"github.com/opencluster/oclocks/subjects"
)

// What a client does that has nothing but NATS: it writes JSON to the subjects of the simple path.

// ask is a request of a plain client.
type ask struct {
	Name    string `json:"name"`
	Request string `json:"request,omitempty"`
	Mode    string `json:"mode,omitempty"`
	Slots   uint32 `json:"slots,omitempty"`
	Take    uint32 `json:"take,omitempty"`
	Kind    string `json:"kind,omitempty"`
	TTL     string `json:"ttl,omitempty"`
	Wait    string `json:"wait,omitempty"`
	Drain   string `json:"drain,omitempty"`
	Holder  string `json:"holder,omitempty"`
	Key     string `json:"key,omitempty"`
}

// told is what the broker answers to it.
type told struct {
	Token   uint64 `json:"token"`
	Ticket  uint64 `json:"ticket"`
	Key     string `json:"key"`
	TTL     string `json:"ttl"`
	Lease   string `json:"lease"`
	Durable bool   `json:"durable"`
	Was     string `json:"was"`
	Error   *struct {
		Code   int    `json:"code"`
		Reason string `json:"reason"`
		Why    string `json:"why"`
	} `json:"error"`
}

func (t *told) key() uint64 {
	key, _ := strconv.ParseUint(t.Key, 16, 64) // 0 is no key
	return key
}

func length(text string) time.Duration {
	d, _ := time.ParseDuration(text) // 0 is none
	return d
}

// plain is a client on the simple path.
func (a *actor) plain(ctx context.Context) error {
	for ctx.Err() == nil {
		nc, err := a.dial(ctx)
		if err != nil {
			return err
		}
		for left := 50 + a.rng.IntN(400); left > 0 && ctx.Err() == nil; left-- {
			a.takePlain(ctx, nc)
			a.pause(ctx, 15*time.Millisecond)
		}
		nc.Close()
	}
	return nil
}

// dial connects as any NATS client would.
func (a *actor) dial(ctx context.Context) (*nats.Conn, error) {
	opts := []nats.Option{nats.Name(a.id), nats.DontRandomize(), nats.MaxReconnects(-1), nats.ReconnectWait(50 * time.Millisecond),
		nats.ReconnectBufSize(-1), nats.PingInterval(time.Second), nats.MaxPingsOutstanding(2), nats.Timeout(2 * time.Second),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { fmt.Fprintln(os.Stderr, a.id, "NATS:", err) })}
	if a.Creds != "" {
		opts = append(opts, nats.UserCredentials(a.Creds), nats.CustomInboxPrefix("_INBOX."+a.User))
	}
	for {
		nc, err := nats.Connect(a.servers(), opts...)
		if err == nil || ctx.Err() != nil {
			return nc, err
		}
		if errors.Is(err, nats.ErrAuthorization) {
			return nil, err
		}
		a.pause(ctx, 100*time.Millisecond)
	}
}

// takePlain takes one lock and gives it back.
func (a *actor) takePlain(ctx context.Context, nc *nats.Conn) {
	request, ttl := a.request(), a.between(2*time.Second, 9*time.Second).Truncate(time.Millisecond)
	body := ask{Name: a.lock("plain"), Kind: "static", TTL: ttl.String(), Holder: a.id, Request: a.id + "-" + request}
	event := check.Event{Kind: check.Ask, Op: subjects.OpAcquire, Request: request, Hold: subjects.Static, TTL: ttl, Grace: -1}
	switch one := a.rng.Float64(); {
	case one < 0.2:
		body.Name, body.Mode, event.Mode = a.lock("rw"), "shared", subjects.Shared
	case one < 0.4:
		event.Mode, event.Slots, event.Take = subjects.Semaphore, slots, uint32(1+a.rng.IntN(2)) //nolint:gosec // small
		body.Name, body.Mode, body.Slots, body.Take = a.lock("semaphore"), "semaphore", event.Slots, event.Take
	case one < 0.65:
		body.Name = a.lock("mutex")
	}
	if event.Name = body.Name; a.chance(0.7) {
		event.Wait = a.between(100*time.Millisecond, 8*time.Second).Truncate(time.Millisecond)
		body.Wait = event.Wait.String()
	}
	if a.chance(0.15) {
		body.Request, event.Plain = "", true
	}
	sent := a.tell(event)
	if !event.Plain && a.chance(0.15) { // it changes its mind while it waits
		stop := make(chan struct{})
		defer func() { <-stop }()
		delay, acquire := a.between(0, 500*time.Millisecond), event
		go func() {
			defer close(stop)
			a.cancelLater(ctx, nc, acquire, delay)
		}()
	}
	t := a.request1(ctx, nc, "acquire", &body, &event, event.Wait+4*time.Second)
	if t == nil || t.Error != nil {
		return
	}
	// Its own sending and 3/4 of the limit: if that is over, it renews first.
	trusted := sent + int64(ttl)/4*3
	if trusted <= boottime.Now() || a.chance(0.1) {
		if trusted = a.renewPlain(ctx, nc, body.Name, t); trusted == 0 {
			return
		}
	}
	a.tell(check.Event{Kind: check.Believe, Name: body.Name, Token: t.Token, Until: trusted})
	if a.chance(0.1) {
		a.pause(ctx, 2*time.Second)
	} else {
		a.pause(ctx, 20*time.Millisecond)
	}
	if a.chance(0.15) && boottime.Now() < trusted {
		if later := a.renewPlain(ctx, nc, body.Name, t); later > trusted {
			a.tell(check.Event{Kind: check.Believe, Name: body.Name, Token: t.Token, Until: later})
		}
	}
	if a.chance(0.05) {
		a.tell(check.Event{Kind: check.Disbelieve, Name: body.Name, Token: t.Token})
		return // and the limit ends it
	}
	release := a.request()
	event = check.Event{Kind: check.Ask, Op: subjects.OpRelease, Request: release, Name: body.Name, Token: t.Token}
	a.tell(event)
	a.request1(ctx, nc, "release", &ask{Name: body.Name, Key: t.Key, Request: a.id + "-" + release}, &event, 8*time.Second)
}

// renewPlain renews a hold, and gives until when it may be trusted; 0: it may not.
func (a *actor) renewPlain(ctx context.Context, nc *nats.Conn, name string, held *told) int64 {
	request := a.request()
	event := check.Event{Kind: check.Ask, Op: subjects.OpRenew, Request: request, Name: name, Token: held.Token}
	sent := a.tell(event)
	t := a.request1(ctx, nc, "renew", &ask{Name: name, Key: held.Key, Request: a.id + "-" + request}, &event, 3*time.Second)
	if t == nil || t.Error != nil {
		return 0
	}
	return sent + int64(length(t.TTL))/4*3
}

// cancelLater takes an acquire back after a while. It runs beside the acquire, so it draws no random numbers.
func (a *actor) cancelLater(ctx context.Context, nc *nats.Conn, acquire check.Event, delay time.Duration) {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return
	}
	event := check.Event{Kind: check.Ask, Op: subjects.OpCancel, Request: acquire.Request + "c", Of: acquire.Request, Name: acquire.Name}
	a.tell(event)
	a.request1(ctx, nc, "cancel", &ask{Name: acquire.Name, Request: a.id + "-" + acquire.Request}, &event, 4*time.Second)
}

// request1 sends a request that was told, again and again while nobody answers it, and tells the answer, or that it gave up: then it
// gives nil.
func (a *actor) request1(ctx context.Context, nc *nats.Conn, op string, body *ask, event *check.Event, patience time.Duration) *told {
	text, err := json.Marshal(body)
	if err != nil {
		panic("chaos: " + err.Error()) // texts and numbers can be written
	}
	subject := fmt.Sprintf("locks.%s.%s", op, a.User)
	for end := time.Now().Add(patience); ctx.Err() == nil && time.Now().Before(end); {
		each := min(time.Until(end), 2*time.Second)
		if event.Plain {
			each = time.Until(end)
		}
		t := &told{}
		msg, err := nc.Request(subject, text, max(each, time.Millisecond))
		if err == nil {
			err = json.Unmarshal(msg.Data, t)
		}
		if err == nil && (t.Error == nil || t.Error.Code != 503 && t.Error.Code != 421) {
			a.answered(event, t)
			return t
		}
		if event.Plain {
			break // sent again it would be another request
		}
		timer := time.NewTimer(20 * time.Millisecond)
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
	a.tell(check.Event{Kind: check.GiveUp, Request: event.Request})
	return nil
}

// answered tells of an answer.
func (a *actor) answered(ask *check.Event, t *told) {
	e := check.Event{Kind: check.Answer, Request: ask.Request, Code: 200}
	switch {
	case t.Error != nil:
		e.Code, e.Reason, e.Why = t.Error.Code, t.Error.Reason, t.Error.Why
	case ask.Op == subjects.OpCancel:
		e.Was, e.Token = t.Was, t.Token
	case ask.Op == subjects.OpRelease:
		e.Token = t.Token
	default:
		e.Token, e.Ticket, e.Key, e.TTL, e.Lease, e.Weak = t.Token, t.Ticket, t.key(), length(t.TTL), length(t.Lease), !t.Durable
	}
	a.tell(e)
}
