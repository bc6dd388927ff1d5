package broker_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/opencluster/oclocks/broker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait for something that must come.
const patience = 30 * time.Second

// answer is a reply as a client in any language sees it.
type answer struct {
	t      testing.TB
	msg    *nats.Msg
	fields map[string]any
}

// connect opens a plain NATS connection, as any client would.
func connect(t testing.TB, url string, opts ...nats.Option) *nats.Conn {
	t.Helper()
	for late := time.Now().Add(patience); ; { // a server gives a client two seconds to say who it is, in which a busy machine may stand still
		nc, err := nats.Connect(url, opts...)
		if err == nil {
			t.Cleanup(nc.Close)
			return nc
		}
		if time.Now().After(late) {
			t.Fatalf("connect: %v", err)
		}
	}
}

// ask sends a request and waits for its answer.
func ask(t testing.TB, nc *nats.Conn, subject, body string) answer {
	t.Helper()
	msg, err := nc.Request(subject, []byte(body), patience)
	if err != nil {
		t.Fatalf("%s %s: %v", subject, body, err)
	}
	return read(t, msg)
}

func read(t testing.TB, msg *nats.Msg) answer {
	t.Helper()
	a := answer{t: t, msg: msg}
	if err := json.Unmarshal(msg.Data, &a.fields); err != nil {
		t.Fatalf("answer %q: %v", msg.Data, err)
	}
	return a
}

// text is a field as text, numbers as they stand.
func (a answer) text(field string) string {
	a.t.Helper()
	switch v := a.fields[field].(type) {
	case string:
		return v
	case float64:
		return fmt.Sprintf("%.0f", v)
	case bool:
		return fmt.Sprint(v)
	case nil:
		a.t.Fatalf("no %s in %s", field, a.msg.Data)
	}
	return fmt.Sprint(a.fields[field])
}

func (a answer) number(field string) uint64 {
	a.t.Helper()
	v, ok := a.fields[field].(float64)
	if !ok {
		a.t.Fatalf("no number %s in %s", field, a.msg.Data)
	}
	return uint64(v)
}

func (a answer) granted() answer {
	a.t.Helper()
	if a.fields["granted"] != true {
		a.t.Fatalf("not granted: %s", a.msg.Data)
	}
	return a
}

// refused checks the body and the headers of a refusal.
func (a answer) refused(code int, reason string) map[string]any {
	a.t.Helper()
	body, _ := a.fields["error"].(map[string]any)
	if body == nil || body["code"] != float64(code) || body["reason"] != reason {
		a.t.Fatalf("expected %d %s, got %s", code, reason, a.msg.Data)
	}
	if got := a.msg.Header.Get("Nats-Service-Error-Code"); got != fmt.Sprint(code) {
		a.t.Fatalf("header says %q, body says %d", got, code)
	}
	if a.msg.Header.Get("Nats-Service-Error") == "" {
		a.t.Fatal("no Nats-Service-Error header")
	}
	if body["message"] == "" || body["message"] == nil {
		a.t.Fatalf("a refusal without a message: %s", a.msg.Data)
	}
	return body
}

// pending is a request whose answer comes later.
type pending struct {
	t   testing.TB
	sub *nats.Subscription
}

// begin sends a request without waiting. It returns when the broker has seen everything that was sent before and this.
func begin(t testing.TB, nc *nats.Conn, subject, body string) pending {
	t.Helper()
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		t.Fatal(err)
	}
	if err := nc.PublishRequest(subject, inbox, []byte(body)); err != nil {
		t.Fatal(err)
	}
	return pending{t, sub}
}

func (p pending) answer() answer {
	p.t.Helper()
	msg, err := p.sub.NextMsg(patience)
	if err != nil {
		p.t.Fatalf("no answer: %v", err)
	}
	return read(p.t, msg)
}

// unanswered checks that nothing has come; call it after an answer to a later request has shown that it would have.
func (p pending) unanswered() {
	p.t.Helper()
	if n, _, err := p.sub.Pending(); err != nil || n != 0 {
		p.t.Fatalf("an answer came too early (%d messages, %v)", n, err)
	}
}

// queued waits until so many wait for a lock.
func queued(t testing.TB, nc *nats.Conn, name string, n int) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		if got := ask(t, nc, "locks.query.anyone", `{"name":"`+name+`"}`); got.number("waiting") == uint64(n) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s never had %d waiters", name, n)
		}
	}
}

func url(d *broker.Daemon) string { return d.URL() }
