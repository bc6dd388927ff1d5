package broker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/subjects"
)

func TestTakeWaitRelease(t *testing.T) {
	d := brokertest.Start(t)
	a, b := connect(t, url(d)), connect(t, url(d))
	first := ask(t, a, "locks.acquire", "orders/4711").granted()
	ask(t, b, "locks.acquire", "orders/4711").refused(409, "held")
	waiting := begin(t, b, "locks.acquire.anyone", `{"name":"orders/4711","wait":"1m"}`)
	queued(t, a, "orders/4711", 1)
	waiting.unanswered()
	ask(t, a, "locks.release", `{"name":"orders/4711","key":"`+first.text("key")+`"}`)
	second := waiting.answer().granted()
	if second.number("token") <= first.number("token") {
		t.Errorf("token %d after %d", second.number("token"), first.number("token"))
	}
	ask(t, a, "locks.release", `{"name":"orders/4711","key":"`+first.text("key")+`"}`).refused(404, "not_held")
	ask(t, a, "locks.release", `{"name":"orders/4711","key":"0123456789abcdef"}`).refused(403, "denied")
}

// A client that hashes the name itself asks the bucket; at the wrong bucket it gets 421 and the map.
func TestHotPathAndMoved(t *testing.T) {
	d := brokertest.Start(t)
	nc := connect(t, url(d))
	info := ask(t, nc, "locks.info.anyone", "{}")
	buckets := uint32(info.number("buckets"))
	right := subjects.BucketOf("hot", buckets)
	ask(t, nc, subjects.HotSubject(right, subjects.OpAcquire, "anyone"), `{"name":"hot"}`).granted()
	wrong := (right + 1) % buckets
	body := ask(t, nc, subjects.HotSubject(wrong, subjects.OpQuery, "anyone"), `{"name":"hot"}`).refused(421, "moved")
	if primary := body["map"].(map[string]any)["primary"].([]any); len(primary) != int(buckets) || primary[0] != d.Node() {
		t.Errorf("map %v", body["map"])
	}
}

func TestMalformedRequestsChangeNothing(t *testing.T) {
	d := brokertest.Start(t)
	nc := connect(t, url(d))
	for _, c := range []struct {
		op, body string
		code     int
		reason   string
	}{
		{"acquire", `{`, 400, "bad_request"},
		{"acquire", `{"name":"x","wait":5}`, 400, "bad_request"},
		{"acquire", `{"name":"\ud800"}`, 400, "bad_request"},
		{"acquire", "{\"name\":\"\xff\"}", 400, "bad_request"},
		{"acquire", `{"name":"x","name":"y"}`, 400, "bad_request"},
		{"acquire", `{"name":""}`, 400, "bad_request"},
		{"acquire", `{"name":"` + strings.Repeat("n", 4097) + `"}`, 413, "too_large"},
		{"acquire", strings.Repeat("n", 4097), 413, "too_large"},
		{"acquire", `{"name":"x","data":"` + strings.Repeat("d", 17<<10) + `"}`, 413, "too_large"},
		{"acquire", `{"name":"x","require":["acks","teleport"]}`, 400, "unsupported"},
		{"acquire", `{"name":"x","mode":"semaphore"}`, 400, "bad_request"},
		{"acquire", `{"name":"x","kind":"connection"}`, 400, "bad_request"},
		{"acquire", `{"name":"x","session":"nonsense","request":1}`, 410, "session"},
		{"release", `{"name":"x"}`, 400, "bad_request"},
		{"release", `{"name":"x","key":"12"}`, 400, "bad_request"},
		{"keep", `{"beat":1}`, 400, "bad_request"},
		{"reclaim", `{"name":"x","receipt":"r","token":1,"key":"0123456789abcdef"}`, 503, "unavailable"},
	} {
		ask(t, nc, "locks."+c.op+".anyone", c.body).refused(c.code, c.reason)
	}
	if state := ask(t, nc, "locks.query", "x").text("state"); state != "free" {
		t.Errorf("after malformed requests the lock is %s", state)
	}
	if n := len(ask(t, nc, "locks.list", "").fields["locks"].([]any)); n != 0 {
		t.Errorf("%d locks after malformed requests", n)
	}
}

// Answers go to the caller's inbox and nowhere else: other requests are dropped unanswered.
func TestChosenReplySubjects(t *testing.T) {
	d := brokertest.Start(t)
	nc := connect(t, url(d))
	held := ask(t, nc, "locks.acquire", "victim").granted()
	forged := connect(t, url(d))
	bucket := subjects.BucketOf("victim", uint32(ask(t, nc, "locks.info", "").number("buckets")))
	for _, reply := range []string{
		"", "locks.event.lock.released.3", subjects.HotSubject(bucket, subjects.OpRelease, "anyone"), "locks.release",
		"_INBOX", "_INBOX.", "$SYS.REQ.ACCOUNT.X.CLAIMS.UPDATE", "foo.bar",
	} {
		if err := forged.PublishRequest("locks.query", reply, []byte("victim")); err != nil && reply != "" && !strings.HasSuffix(reply, ".") {
			t.Fatalf("publish with reply %q: %v", reply, err)
		}
	}
	// The broker has seen all of them when it answers this.
	ask(t, forged, "locks.query", "victim")
	ask(t, nc, "locks.renew", `{"name":"victim","key":"`+held.text("key")+`"}`).granted()
}

func TestSessionsKeepAndClose(t *testing.T) {
	d := brokertest.Start(t)
	nc := connect(t, url(d))
	open := ask(t, nc, "locks.session-open.anyone", `{"ttl":"25s"}`)
	session := open.text("session")
	if open.text("disconnect") != "ttl" || open.text("lease") != "25s" {
		t.Errorf("session-open: %s", open.msg.Data)
	}
	want := uint64(0)
	for i := range 10 {
		g := ask(t, nc, "locks.acquire.anyone", fmt.Sprintf(`{"name":"s/%d","session":%q,"request":%d}`, i, session, i+1)).granted()
		want ^= subjects.TokenHash(g.number("token"))
	}
	keep := ask(t, nc, "locks.keep.anyone", fmt.Sprintf(`{"session":%q,"beat":3}`, session))
	if keep.number("count") != 10 || keep.text("hash") != fmt.Sprintf("%016x", want) || keep.number("beat") != 3 {
		t.Errorf("keep-alive: %s, want hash %016x", keep.msg.Data, want)
	}
	queuedGrant := begin(t, nc, "locks.acquire", `{"name":"s/1","wait":"1m"}`)
	queued(t, nc, "s/1", 1)
	closed := ask(t, nc, "locks.session-close.anyone", fmt.Sprintf(`{"session":%q}`, session))
	if closed.number("released") != 10 {
		t.Errorf("session-close: %s", closed.msg.Data)
	}
	queuedGrant.answer().granted()
	ask(t, nc, "locks.acquire.anyone", fmt.Sprintf(`{"name":"s/2","session":%q,"request":99}`, session)).refused(410, "session")
}

// A session that comes back with its secret is the same session; the earlier incarnation is superseded.
func TestSessionComesBack(t *testing.T) {
	d := brokertest.Start(t)
	nc := connect(t, url(d))
	first := ask(t, nc, "locks.session-open.anyone", `{}`)
	g := ask(t, nc, "locks.acquire.anyone", fmt.Sprintf(`{"name":"mine","session":%q,"request":1}`, first.text("session"))).granted()
	second := ask(t, nc, "locks.session-open.anyone", fmt.Sprintf(`{"secret":%q}`, first.text("secret")))
	if second.number("incarnation") <= first.number("incarnation") || second.text("events") != first.text("events") {
		t.Errorf("came back as %s, was %s", second.msg.Data, first.msg.Data)
	}
	ask(t, nc, "locks.renew.anyone", fmt.Sprintf(`{"name":"mine","key":%q,"session":%q,"request":2}`, g.text("key"), second.text("session"))).granted()
	body := ask(t, nc, "locks.acquire.anyone", fmt.Sprintf(`{"name":"mine","session":%q,"request":3}`, first.text("session"))).refused(410, "session")
	if body["why"] != "superseded" {
		t.Errorf("why %v", body["why"])
	}
	ask(t, nc, "locks.session-open.anyone", `{"secret":"abcd"}`).refused(403, "denied")
}

// The end of a connection reaches the lock without anybody polling: with grace 0s the next waiter has it at once.
func TestClosedConnectionFreesItsLocks(t *testing.T) {
	d := brokertest.Start(t)
	holder, waiter := connect(t, url(d)), connect(t, url(d))
	cid, err := holder.GetClientID()
	if err != nil {
		t.Fatal(err)
	}
	open := ask(t, holder, "locks.session-open.anyone",
		fmt.Sprintf(`{"ttl":"60s","server":%q,"cid":%d}`, holder.ConnectedServerId(), cid))
	if open.text("disconnect") != "event" {
		t.Fatalf("session-open: %s", open.msg.Data)
	}
	ask(t, holder, "locks.acquire.anyone", fmt.Sprintf(`{"name":"c","session":%q,"request":1,"grace":"0s"}`, open.text("session"))).granted()
	next := begin(t, waiter, "locks.acquire", `{"name":"c","wait":"1m"}`)
	queued(t, waiter, "c", 1)
	holder.Close()
	next.answer().granted()
}

// No bucket hears of the end of a lane: what is of the session ends with the session's own connection.
func TestClosedLaneEndsNothing(t *testing.T) {
	d := brokertest.Start(t, func(s *conf.Settings) { s.HTTP = "127.0.0.1:0" })
	lane, home, other := connect(t, url(d), nats.Name(subjects.LaneName+"x")), connect(t, url(d)), connect(t, url(d))
	for name, nc := range map[string]*nats.Conn{"of-the-lane": lane, "of-the-home": home} {
		cid, err := nc.GetClientID()
		if err != nil {
			t.Fatal(err)
		}
		session := ask(t, nc, "locks.session-open.anyone", fmt.Sprintf(`{"ttl":"60s","server":%q,"cid":%d}`, nc.ConnectedServerId(), cid)).text("session")
		ask(t, nc, "locks.acquire.anyone", fmt.Sprintf(`{"name":%q,"session":%q,"request":1,"grace":"0s"}`, name, session)).granted()
	}
	ends := func() float64 { return scrape(t, d)["oclocks_client_disconnects_total"] }
	before := ends()
	lane.Close()
	eventually(t, "the lane's end", func() bool { return ends() > before })
	next := begin(t, other, "locks.acquire", `{"name":"of-the-home","wait":"1m"}`)
	queued(t, other, "of-the-home", 1)
	home.Close()
	next.answer().granted()
	ask(t, other, "locks.acquire", `{"name":"of-the-lane"}`).refused(409, "held")
}

func TestEnqueueIsToldByEvent(t *testing.T) {
	d := brokertest.Start(t)
	nc := connect(t, url(d))
	open := ask(t, nc, "locks.session-open.anyone", `{}`)
	events, err := nc.SubscribeSync(open.text("events"))
	if err != nil {
		t.Fatal(err)
	}
	held := ask(t, nc, "locks.acquire", "e").granted()
	place := ask(t, nc, "locks.acquire.anyone", fmt.Sprintf(`{"name":"e","session":%q,"request":1,"enqueue":true}`, open.text("session")))
	if place.text("queued") != "true" || place.number("place") != 1 {
		t.Errorf("enqueue: %s", place.msg.Data)
	}
	ask(t, nc, "locks.release", `{"name":"e","key":"`+held.text("key")+`"}`)
	for {
		msg, err := events.NextMsg(patience)
		if err != nil {
			t.Fatalf("no grant by event: %v", err)
		}
		event := read(t, msg)
		if event.text("subject") != msg.Subject {
			t.Errorf("an event at %s says that it is %s", msg.Subject, event.text("subject"))
		}
		if event.text("type") == "granted" {
			return
		}
	}
}

func TestListPages(t *testing.T) {
	d := brokertest.Start(t)
	nc := connect(t, url(d))
	for i := range 25 {
		ask(t, nc, "locks.acquire", fmt.Sprintf("list/%02d", i)).granted()
	}
	ask(t, nc, "locks.acquire", "other").granted()
	after, seen := "", 0
	for range 10 {
		page := ask(t, nc, "locks.list.anyone", fmt.Sprintf(`{"prefix":"list/","limit":7,"after":%q}`, after))
		for _, rec := range page.fields["locks"].([]any) {
			if want := fmt.Sprintf("list/%02d", seen); rec.(map[string]any)["name"] != want {
				t.Fatalf("record %d is %v", seen, rec)
			}
			seen++
		}
		next, more := page.fields["next"].(string)
		if !more || next == "" {
			break
		}
		after = next
	}
	if seen != 25 {
		t.Errorf("%d locks listed, 25 held", seen)
	}
	ask(t, nc, "locks.list.anyone", `{"after":"%%"}`).refused(400, "bad_request")
}

// A stop tells clients: waiters that cannot be kept are refused, new requests too, and the event says so.
func TestStopTellsWaiters(t *testing.T) {
	d := brokertest.Start(t)
	nc := connect(t, url(d))
	down, err := nc.SubscribeSync("locks.event.server.down.*")
	if err != nil {
		t.Fatal(err)
	}
	ask(t, nc, "locks.acquire", "x").granted()
	waiting := begin(t, nc, "locks.acquire", `{"name":"x","wait":"1m"}`)
	queued(t, nc, "x", 1)
	brokertest.Stop(t, d)
	if body := waiting.answer().refused(503, "unavailable"); body["why"] != "stopping" {
		t.Errorf("why %v", body["why"])
	}
	if _, err := down.NextMsg(patience); err != nil {
		t.Errorf("no event: %v", err)
	}
}

// What was answered survives a restart, tokens go on rising, and the waiter of a session keeps its place.
func TestRestartKeepsLocks(t *testing.T) {
	dir := t.TempDir()
	d := brokertest.Start(t, brokertest.WithData(dir))
	nc := connect(t, url(d), nats.MaxReconnects(0))
	g := ask(t, nc, "locks.acquire", "kept").granted()
	s := ask(t, nc, "locks.session-open.anyone", `{"ttl":"30s"}`)
	begin(t, nc, "locks.acquire.anyone", fmt.Sprintf(`{"name":"kept","session":%q,"request":1,"wait":"1m"}`, s.text("session")))
	queued(t, nc, "kept", 1)
	brokertest.Stop(t, d)

	d = brokertest.Start(t, brokertest.WithData(dir))
	nc = connect(t, url(d))
	ask(t, nc, "locks.acquire", "kept").refused(409, "held")
	again := begin(t, nc, "locks.acquire.anyone", fmt.Sprintf(`{"name":"kept","session":%q,"request":1,"wait":"1m"}`, s.text("session")))
	ask(t, nc, "locks.release", `{"name":"kept","key":"`+g.text("key")+`"}`)
	if next := again.answer().granted(); next.number("token") <= g.number("token") {
		t.Errorf("token %d after %d", next.number("token"), g.number("token"))
	}
}

func TestTokensRiseOverRestartsWithoutADisk(t *testing.T) {
	last := uint64(0)
	for range 3 {
		d := brokertest.Start(t)
		nc := connect(t, url(d), nats.MaxReconnects(0))
		for range 3 {
			g := ask(t, nc, "locks.acquire", "n").granted()
			if g.number("token") <= last {
				t.Fatalf("token %d after %d", g.number("token"), last)
			}
			last = g.number("token")
			ask(t, nc, "locks.release", `{"name":"n","key":"`+g.text("key")+`"}`)
		}
		brokertest.Stop(t, d)
	}
}

func TestServiceIsListed(t *testing.T) {
	d := brokertest.Start(t)
	nc := connect(t, url(d))
	for _, subject := range []string{"$SRV.PING", "$SRV.PING.oclocks", "$SRV.INFO.oclocks", "$SRV.STATS.oclocks." + d.Node()} {
		if got := ask(t, nc, subject, ""); got.text("name") != "oclocks" || got.text("id") != d.Node() {
			t.Errorf("%s: %s", subject, got.msg.Data)
		}
	}
}

func TestTimeoutsAndLimits(t *testing.T) {
	d := brokertest.Start(t)
	nc := connect(t, url(d))
	ask(t, nc, "locks.acquire", "t").granted()
	body := ask(t, nc, "locks.acquire", `{"name":"t","wait":"20ms"}`).refused(408, "timeout")
	if body["queue"] == nil {
		t.Errorf("no queue in %v", body)
	}
	ask(t, nc, "locks.acquire", `{"name":"u","ttl":"10ms"}`).granted()
	start := time.Now()
	ask(t, nc, "locks.acquire", `{"name":"u","wait":"10s"}`).granted()
	if time.Since(start) > 9*time.Second {
		t.Error("the time limit did not end the hold")
	}
}
