package broker_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/subjects"
)

// bundler is a client in any language that sends bundles.
type bundler struct {
	t       testing.TB
	nc      *nats.Conn
	subject string
	inbox   string
	sub     *nats.Subscription
	sheaves int // of several answers
	n       int
}

func newBundler(t testing.TB, nc *nats.Conn, d *broker.Daemon, user string) *bundler {
	t.Helper()
	b := &bundler{t: t, nc: nc, subject: "locks.b.~" + d.Node() + ".acquire." + user, inbox: nc.NewInbox() + "."}
	b.sub = must(nc.SubscribeSync(b.inbox + "*"))(t)
	return b
}

// answers sends a bundle and waits for its answers, by line: the code, 0 where it is not told, and the fields.
func (b *bundler) answers(lines ...string) []line {
	b.t.Helper()
	reply := b.inbox
	for i := range lines {
		reply += fmt.Sprintf("~%d-%d", b.n, i)
	}
	if err := b.nc.PublishRequest(b.subject, reply, []byte(strings.Join(lines, "\n")+"\n")); err != nil {
		b.t.Fatal(err)
	}
	got := make([]line, len(lines))
	for missing := len(lines); missing > 0; {
		msg, err := b.sub.NextMsg(patience)
		if err != nil {
			b.t.Fatalf("%d of %d answers are missing: %v", missing, len(lines), err)
		}
		token := msg.Subject[len(b.inbox):]
		if token != "~" {
			missing -= b.take(got, token[1:], msg.Header.Get("Nats-Service-Error-Code"), string(msg.Data))
			continue
		}
		all := strings.Split(strings.TrimSuffix(string(msg.Data), "\n"), "\n")
		if len(all) > 1 {
			b.sheaves++
		}
		for _, text := range all {
			f := strings.SplitN(text, " ", 3)
			missing -= b.take(got, f[0], f[1], f[2])
		}
	}
	b.n++
	return got
}

type line struct {
	code string
	answer
}

func (b *bundler) take(got []line, token, code, body string) int {
	b.t.Helper()
	var n, i int
	if _, err := fmt.Sscanf(token, "%d-%d", &n, &i); err != nil || n != b.n || i >= len(got) || got[i].fields != nil {
		b.t.Fatalf("an answer with the token %q: %s", token, body)
	}
	got[i] = line{code, answer{t: b.t, msg: &nats.Msg{Data: []byte(body)}}}
	if err := json.Unmarshal([]byte(body), &got[i].fields); err != nil {
		b.t.Fatalf("%q: %v", body, err)
	}
	return 1
}

// refused checks that a request of a bundle was.
func (l line) refused(code, reason string) {
	l.t.Helper()
	body, _ := l.fields["error"].(map[string]any)
	if l.code != code || body["reason"] != reason || body["message"] == "" {
		l.t.Fatalf("expected %s %s, got %s %s", code, reason, l.code, l.msg.Data)
	}
}

// Each request of a bundle is answered as if it had come by itself, the good ones between bad ones too, and answers share messages.
func TestBundle(t *testing.T) {
	d := brokertest.Start(t)
	nc := connect(t, url(d))
	b := newBundler(t, nc, d, "anyone")
	limits := ask(t, nc, b.subject, "")
	if limits.number("requests") != subjects.MaxBundle || limits.number("bytes") != subjects.MaxBundleBytes {
		t.Errorf("who asks for bundles is told %s", limits.msg.Data)
	}
	got := b.answers(
		`acquire {"name":"a"}`, `acquire {`, `acquire {"name":"b","session":"x","request":1}`, `query {"name":"a"}`, ``, `acquire`,
		`acquire {"name":"a"}`, `acquire {"name":"c","request":"one"}`, `release {"name":"c"}`, `cancel {"name":"c","request":"one"}`)
	a := got[0].granted()
	got[1].refused("400", "bad_request")
	got[2].refused("410", "session")
	got[3].refused("400", "bad_request")
	got[4].refused("400", "bad_request")
	got[5].refused("400", "bad_request")
	got[6].refused("409", "held")
	got[7].granted()
	got[8].refused("400", "bad_request")
	if got[9].text("was") != "granted" {
		t.Errorf("cancel: %s", got[9].msg.Data)
	}
	got = b.answers(`renew {"name":"a","key":"`+a.text("key")+`"}`, `release {"name":"a","key":"`+a.text("key")+`"}`, `acquire {"name":"a"}`)
	got[0].granted()
	if got[1].text("released") != "true" || got[2].granted().number("token") <= a.number("token") {
		t.Errorf("release and acquire: %s, %s", got[1].msg.Data, got[2].msg.Data)
	}
	// A request by itself: the shard's refusal is in a sheaf, the pump's is not.
	hot := subjects.HotSubject(subjects.BucketOf("a", uint32(ask(t, nc, "locks.info", "").number("buckets"))), subjects.OpAcquire, "anyone")
	for body, to := range map[string]string{`{"name":"a"}`: "~", `{"name":5}`: "~one"} {
		if err := nc.PublishRequest(hot, b.inbox+"~one", []byte(body)); err != nil {
			t.Fatal(err)
		}
		msg := must(b.sub.NextMsg(patience))(t)
		switch alone := to != "~"; {
		case msg.Subject != b.inbox+to:
			t.Errorf("%s is answered to %s", body, msg.Subject)
		case alone:
			read(t, msg).refused(400, "bad_request")
		case !strings.HasPrefix(string(msg.Data), "one 409 {") || len(msg.Header) > 0:
			t.Errorf("%s is answered %s, %v", body, msg.Data, msg.Header)
		}
	}
	for deadline := time.Now().Add(patience); b.sheaves == 0; {
		for _, l := range b.answers(`acquire {"name":"a"}`, `acquire {"name":"a"}`, `acquire {"name":"a"}`, `acquire {"name":"a"}`) {
			l.refused("409", "held")
		}
		if time.Now().After(deadline) {
			t.Fatal("no two answers ever shared a message")
		}
	}
}

// A bundle that cannot be read is refused as a whole, and nothing of it is carried out.
func TestBadBundles(t *testing.T) {
	d := brokertest.Start(t)
	nc := connect(t, url(d))
	b := newBundler(t, nc, d, "anyone")
	for _, c := range []struct {
		tokens, body string
		code         int
		reason       string
	}{
		{"~a", "acquire {\"name\":\"x\"}\nacquire {\"name\":\"y\"}\n", 400, "bad_request"},
		{"a", "acquire {\"name\":\"x\"}\n", 400, "bad_request"},
		{"~a", "acquire {\"name\":\"x\"}", 400, "bad_request"},
		{strings.Repeat("~a", 65), strings.Repeat("acquire {\"name\":\"x\"}\n", 65), 413, "too_large"},
		{"~a~b", "acquire {\"name\":\"x\"}\nacquire {\"name\":\"y\"}\n" + strings.Repeat(" ", 32<<10), 413, "too_large"},
	} {
		if err := nc.PublishRequest(b.subject, b.inbox+c.tokens, []byte(c.body)); err != nil {
			t.Fatal(err)
		}
		msg := must(b.sub.NextMsg(patience))(t)
		if read(t, msg).refused(c.code, c.reason); msg.Subject != b.inbox+c.tokens {
			t.Errorf("the refusal came to %q", msg.Subject)
		}
	}
	if n := len(ask(t, nc, "locks.list", "").fields["locks"].([]any)); n != 0 {
		t.Errorf("%d locks after bad bundles", n)
	}
}

// A caller that takes sheaves gets a single answer by itself, and whoever waits is told later, whatever comes first.
func TestWhoTakesSheavesWaits(t *testing.T) {
	d := brokertest.Start(t)
	nc := connect(t, url(d))
	b := newBundler(t, nc, d, "anyone")
	key := b.answers(`acquire {"name":"w"}`)[0].granted().text("key")
	waiter := newBundler(t, nc, d, "anyone")
	granted := make(chan []line, 1)
	go func() {
		defer close(granted) // also if there are none
		granted <- waiter.answers(`acquire {"name":"w","wait":"1m"}`, `acquire {"name":"v"}`)
	}()
	queued(t, nc, "w", 1)
	b.answers(`release {"name":"w","key":"` + key + `"}`)
	for _, l := range <-granted {
		l.granted()
	}
}

// A node that is not the primary refuses each request for itself, with the map; one that it is the primary for is carried out.
func TestBundleAtAnotherNode(t *testing.T) {
	c, conns := startNodes(t, 3)
	b := newBundler(t, conns[0], c.Daemons[1], "anyone")
	bundled := func() float64 { return scrape(t, c.Daemons[1])["oclocks_bundled_requests_total"] }
	steady(t, func() error {
		mine, others := nameAt(t, conns[0], c.Daemons[1].Node()), nameAt(t, conns[0], c.Daemons[2].Node())
		before := bundled()
		got := b.answers(`acquire {"name":"`+others+`"}`, `acquire {"name":"`+mine+`","request":"r"}`)
		if got[0].code != "421" || got[1].fields["granted"] != true {
			return fmt.Errorf("answers: %s, %s", got[0].msg.Data, got[1].msg.Data)
		}
		got[0].refused("421", "moved")
		primary := got[0].fields["error"].(map[string]any)["map"].(map[string]any)["primary"].([]any)
		if n := bundled() - before; n != 2 {
			return fmt.Errorf("%v requests came in bundles", n)
		}
		if at := primary[subjects.BucketOf(others, uint32(len(primary)))]; at != c.Daemons[2].Node() {
			return fmt.Errorf("the map that comes along has %v", at)
		}
		return nil
	})
}

// Nobody's bundle is another's, and none brings anybody's answers into another's inbox.
func TestBundlesOfUsers(t *testing.T) {
	d := tenants(t)
	alice, aliceUser := login(t, d, "red", "alice", conf.RoleUser)
	mallory, malloryUser := login(t, d, "red", "mallory", conf.RoleUser)
	viewer, viewerUser := login(t, d, "red", "eve", conf.RoleViewer)
	own := "locks.b.~" + d.Node() + ".acquire."
	mayNotPublish(t, mallory, own+aliceUser)
	mayNotPublish(t, viewer, own+viewerUser)
	mayNotSubscribe(t, mallory, own+"*")
	victim := must(alice.SubscribeSync("_INBOX." + aliceUser + ".*"))(t)
	if err := alice.Flush(); err != nil {
		t.Fatal(err)
	}
	for _, reply := range []string{"_INBOX." + aliceUser + ".~a", "_INBOX.~a", "_INBOX." + malloryUser + "~a", "locks.release.~" + aliceUser} {
		for _, body := range []string{"acquire {\"name\":\"m\"}\n", "", "x\n", "acquire {}\nacquire {}\n"} {
			if err := mallory.PublishRequest(own+malloryUser, reply, []byte(body)); err != nil {
				t.Fatal(err)
			}
		}
	}
	m := newBundler(t, mallory, d, malloryUser)
	got := m.answers(`acquire {"name":"m"}`, `acquire {"name":"m"}`)
	got[0].granted()
	got[1].refused("409", "held")
	newBundler(t, alice, d, aliceUser).answers(`acquire {"name":"m"}`)[0].refused("409", "held")
	if n, _, err := victim.Pending(); err != nil || n != 0 {
		t.Errorf("the broker published %d messages into another's inbox (%v)", n, err)
	}
}
