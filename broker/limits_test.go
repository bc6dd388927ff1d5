package broker_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
)

// A request that is no acquire can bring a new session too: the quota counts for it.
func TestSessionQuotaCountsForEveryOperation(t *testing.T) {
	d := brokertest.Start(t, func(s *conf.Settings) {
		s.Buckets = 1
		s.Zones = []conf.Zone{{Name: "default", Open: true, Quota: conf.Quota{Sessions: 1}}}
	})
	nc := connect(t, url(d))
	cancel := func() answer {
		session := ask(t, nc, "locks.session-open.anyone", "{}").text("session")
		return ask(t, nc, "locks.cancel.anyone", `{"name":"n","session":"`+session+`","request":1}`)
	}
	if was := cancel().text("was"); was != "unseen" {
		t.Fatalf("cancelled: it was %s", was)
	}
	cancel().refused(429, "quota")
}

// A session from before max_lease was lowered: neither a keep-alive nor a grant promises more, in a bucket that knows the session with
// its longer lease or in one that does not. Once it is longer again, both keep for as long as the keep-alive says.
func TestKeepPromisesNoMoreThanMaxLease(t *testing.T) {
	dir := t.TempDir()
	d := brokertest.Start(t, brokertest.WithData(dir))
	nc := connect(t, url(d))
	session := ask(t, nc, "locks.session-open.anyone", `{"ttl":"30s"}`).text("session")
	before := ask(t, nc, "locks.acquire.anyone", `{"name":"before","session":"`+session+`"}`).granted()
	brokertest.Stop(t, d)
	d = brokertest.Start(t, brokertest.WithData(dir), func(s *conf.Settings) { s.MaxLease, s.SessionLease = 5*time.Second, 5*time.Second })
	nc = connect(t, url(d))
	granted := ask(t, nc, "locks.acquire.anyone", `{"name":"n","session":"`+session+`"}`).granted()
	kept := ask(t, nc, "locks.keep.anyone", `{"session":"`+session+`","beat":1}`)
	renewed := ask(t, nc, "locks.renew.anyone", `{"name":"before","key":"`+before.text("key")+`","session":"`+session+`"}`).granted()
	if before.text("lease") != "30s" {
		t.Errorf("before it was lowered the grant says %s", before.text("lease"))
	}
	if granted.text("lease") != "5s" || kept.text("lease") != "5s" || renewed.text("lease") != "5s" {
		t.Errorf("the grant says %s, the keep-alive %s, the renewal %s", granted.text("lease"), kept.text("lease"), renewed.text("lease"))
	}
	brokertest.Stop(t, d)
	d = brokertest.Start(t, brokertest.WithData(dir))
	nc = connect(t, url(d))
	kept = ask(t, nc, "locks.keep.anyone", `{"session":"`+session+`","beat":2}`)
	for _, hold := range []answer{before, granted} {
		renew := `{"name":"` + hold.text("name") + `","key":"` + hold.text("key") + `","session":"` + session + `"}`
		if got := ask(t, nc, "locks.renew.anyone", renew).granted().text("lease"); got != "30s" || kept.text("lease") != got {
			t.Errorf("longer again: the keep-alive says %s, and %s is kept for %s", kept.text("lease"), hold.text("name"), got)
		}
	}
}

// Locks with much data do not make a page that no message can carry.
func TestListOfLocksWithMuchData(t *testing.T) {
	d := brokertest.Start(t)
	nc := connect(t, url(d))
	data := strings.Repeat("x", 15<<10)
	const locks = 80
	for i := range locks {
		ask(t, nc, "locks.acquire.anyone", fmt.Sprintf(`{"name":"l%02d","data":"%s"}`, i, data)).granted()
	}
	seen, after := 0, ""
	for page := 0; page < locks; page++ {
		got := ask(t, nc, "locks.list.anyone", `{"limit":1000,"after":"`+after+`"}`)
		seen += len(got.fields["locks"].([]any))
		after, _ = got.fields["next"].(string)
		if after == "" {
			break
		}
	}
	if seen != locks {
		t.Errorf("%d of %d locks in the list", seen, locks)
	}
}
