package broker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/bucket/replicated"
	"github.com/opencluster/oclocks/subjects"
)

// sheafScene is a shard of a daemon with two zones, each with a server of its own in place of its account, and what is published there.
func sheafScene(t *testing.T) (s *shard, zones []*zone, heard func(zone int) []*nats.Msg) {
	t.Helper()
	d := &Daemon{}
	d.metrics = newMetrics(d)
	all := make(map[string]*zone)
	var subs []*nats.Subscription
	for _, name := range []string{"red", "blue"} {
		srv, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true})
		if err != nil {
			t.Fatal(err)
		}
		srv.Start()
		if !srv.ReadyForConnections(10 * time.Second) {
			t.Fatal("the NATS server does not start")
		}
		nc, err := nats.Connect("", nats.InProcessServer(srv))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			nc.Close()
			srv.Shutdown()
			srv.WaitForShutdown()
		})
		sub, err := nc.SubscribeSync(">")
		if err != nil {
			t.Fatal(err)
		}
		z := &zone{d: d, name: name, conn: nc}
		all[name], zones, subs = z, append(zones, z), append(subs, sub)
	}
	d.zones.Store(&all)
	return &shard{d: d}, zones, func(zone int) (heard []*nats.Msg) {
		if err := zones[zone].conn.Flush(); err != nil {
			t.Fatal(err)
		}
		for {
			msg, err := subs[zone].NextMsg(time.Millisecond)
			if err != nil {
				return heard
			}
			heard = append(heard, msg)
		}
	}
}

type rawBody string

func (r rawBody) AppendJSON(dst []byte) []byte { return append(dst, r...) }

// What is published in one batch: what is in which message, and in which order.
func TestSheaves(t *testing.T) {
	s, _, heard := sheafScene(t)
	reply := func(zone, to string, body subjects.Body) {
		s.out.Released = append(s.out.Released, replicated.Effect{Effect: bucket.Effect{Kind: bucket.Reply, Zone: zone, To: to, Body: body}})
	}
	publish := func() {
		s.publish()
		s.out.Released = s.out.Released[:0]
	}
	held := &subjects.Refusal{Code: 409, Reason: subjects.ReasonHeld, Message: "held"}

	// Two zones with one inbox subject, and another inbox; who takes none is answered alone.
	reply("red", "_INBOX.x.~a", rawBody(`{"n":1}`))
	reply("blue", "_INBOX.x.~b", rawBody(`{"n":2}`))
	reply("red", "_INBOX.x.~c", held)
	reply("red", "_INBOX.y.~d", held)
	reply("red", "_INBOX.x.e", rawBody(`{"n":3}`))
	publish()
	expect(t, heard(0), "_INBOX.x.e {\"n\":3}", "_INBOX.x.~ a 200 {\"n\":1}\nc 409 "+string(held.AppendJSON(nil))+"\n",
		"_INBOX.y.~ d 409 "+string(held.AppendJSON(nil))+"\n")
	expect(t, heard(1), "_INBOX.x.~b {\"n\":2}")

	// One with a line feed goes by itself, the others together. An event comes after the answers before it.
	reply("red", "_INBOX.x.~a", rawBody(`{"n":1}`))
	reply("red", "_INBOX.x.~b", rawBody("{\n}"))
	reply("red", "_INBOX.x.~c", rawBody(`{"n":3}`))
	event := bucket.Effect{Kind: bucket.NotifyOwner, Zone: "red", User: "u", SessionID: "i", Body: &subjects.SessionEvent{Type: "lost"}}
	s.out.Released = append(s.out.Released, replicated.Effect{Effect: event})
	reply("red", "_INBOX.x.~d", rawBody(`{"n":4}`))
	publish()
	got := heard(0)
	if len(got) != 4 || got[2].Subject != subjects.SessionEventSubject("u", "i") {
		t.Fatalf("%d messages, the third is for %q", len(got), got[min(2, len(got)-1)].Subject)
	}
	expect(t, append(got[:2:2], got[3]), "_INBOX.x.~b {\n}", "_INBOX.x.~ a 200 {\"n\":1}\nc 200 {\"n\":3}\n", "_INBOX.x.~d {\"n\":4}")

	// A sheaf that is large enough goes, and the next one begins.
	long := rawBody(`"` + strings.Repeat("x", maxSheaf/4) + `"`)
	for i := range 6 {
		reply("red", fmt.Sprint("_INBOX.x.~", i), long)
	}
	publish()
	if got := heard(0); len(got) != 2 || strings.Count(string(got[0].Data), "\n") != 4 || strings.Count(string(got[1].Data), "\n") != 2 {
		t.Errorf("%d messages of six long answers", len(got))
	}

	// However many inboxes there are: all are answered, and no memory is kept of most.
	for i := range 3 * maxSheaves {
		reply("red", fmt.Sprintf("_INBOX.%d.~a", i), rawBody(`{}`))
		reply("red", fmt.Sprintf("_INBOX.%d.~b", i), rawBody(`{}`))
	}
	publish()
	if got := heard(0); len(got) != 3*maxSheaves {
		t.Errorf("%d messages to %d inboxes", len(got), 3*maxSheaves)
	}
	if len(s.sheaves.at) > 0 || cap(s.sheaves.all) > keptSheaves {
		t.Errorf("%d and %d are kept", len(s.sheaves.at), cap(s.sheaves.all))
	}
}

func expect(t *testing.T, got []*nats.Msg, want ...string) {
	t.Helper()
	var texts []string
	for _, msg := range got {
		texts = append(texts, msg.Subject+" "+string(msg.Data))
	}
	if fmt.Sprintf("%q", texts) != fmt.Sprintf("%q", want) {
		t.Errorf("heard %q, not %q", texts, want)
	}
}
