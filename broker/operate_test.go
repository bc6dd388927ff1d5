package broker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
)

func TestHealthAndMetrics(t *testing.T) {
	d := brokertest.Start(t, func(s *conf.Settings) { s.HTTP = "127.0.0.1:0" })
	nc := connect(t, url(d))
	ask(t, nc, "locks.acquire", "m").granted()
	ask(t, nc, "locks.acquire", "m").refused(409, "held")
	for path, want := range map[string][]string{
		"/healthz": {"ok"},
		"/readyz":  {"ok"},
		"/metrics": {
			`oclocks_holds{zone="default"} 1`, `oclocks_answers_total{code="409"} 1`, `oclocks_ready 1`,
			`oclocks_requests_total{op="acquire",zone="default"} 2`, `oclocks_clients{zone="default"} 1`,
		},
	} {
		status, body := get(t, d.HTTPAddr(), path)
		if status != http.StatusOK {
			t.Errorf("%s: status %d: %s", path, status, body)
		}
		for _, line := range want {
			if !slices.Contains(strings.Split(body, "\n"), line) {
				t.Errorf("%s has no line %q", path, line)
			}
		}
	}
}

func get(t *testing.T, addr, path string) (status int, body string) {
	t.Helper()
	resp, err := http.Get("http://" + addr + path) //nolint:noctx // the test has a deadline of its own
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	http.DefaultClient.CloseIdleConnections()
	return resp.StatusCode, string(text)
}

// Zones come, change and go while the daemon runs; a zone that is made again serves again.
func TestReloadZones(t *testing.T) {
	red, blue := conf.Zone{Name: "red"}, conf.Zone{Name: "blue", Quota: conf.Quota{Holds: 2}}
	d := brokertest.Start(t, brokertest.WithZones(red))
	ctx := context.Background()
	reload := func(zones ...conf.Zone) {
		t.Helper()
		if err := d.Reload(ctx, brokertest.Settings(brokertest.WithZones(zones...))); err != nil {
			t.Fatal(err)
		}
	}
	nc, user := login(t, d, "red", "alice", conf.RoleUser)
	held := ask(t, nc, "locks.acquire."+user, "r").granted()
	reload(red, blue)
	ask(t, nc, "locks.renew."+user, `{"name":"r","key":"`+held.text("key")+`"}`).granted()

	other, otherUser := login(t, d, "blue", "bob", conf.RoleUser)
	for i := range 2 {
		ask(t, other, "locks.acquire."+otherUser, fmt.Sprint("b", i)).granted()
	}
	ask(t, other, "locks.acquire."+otherUser, "b2").refused(429, "quota")
	ask(t, nc, "locks.acquire."+user, "r2").granted() // another zone's quota

	closed := make(chan struct{})
	other.SetClosedHandler(func(*nats.Conn) { close(closed) })
	reload(red)
	<-closed
	if _, err := nats.Connect(url(d), nats.UserInfo("x", "y")); err == nil {
		t.Error("connected without credentials where no zone is open")
	}
	reload(red, blue)
	again, againUser := login(t, d, "blue", "carol", conf.RoleUser)
	ask(t, again, "locks.info."+againUser, "")
}

// Who brings a state of the configuration that is older than the one that was taken over meanwhile takes nothing back.
func TestOlderZonesChangeNothing(t *testing.T) {
	red, blue := conf.Zone{Name: "red"}, conf.Zone{Name: "blue"}
	d := brokertest.Start(t, brokertest.WithZones(red))
	before := d.Shared()
	if err := d.Reload(t.Context(), brokertest.Settings(brokertest.WithZones(red, blue))); err != nil {
		t.Fatal(err)
	}
	if err := d.ApplyZones(t.Context(), before); err != nil {
		t.Fatal(err)
	}
	nc, user := login(t, d, "blue", "bob", conf.RoleUser)
	ask(t, nc, "locks.acquire."+user, "b").granted()
}

func TestRevokedUserIsSentAway(t *testing.T) {
	d := brokertest.Start(t, brokertest.WithZones(conf.Zone{Name: "red"}))
	nc, user := login(t, d, "red", "alice", conf.RoleUser)
	ask(t, nc, "locks.acquire."+user, "r").granted()
	closed := make(chan struct{})
	nc.SetClosedHandler(func(*nats.Conn) { close(closed) })
	if _, err := d.Auth().RevokeUser("red", user); err != nil {
		t.Fatal(err)
	}
	if err := d.Reload(context.Background(), brokertest.Settings(brokertest.WithZones(conf.Zone{Name: "red"}))); err != nil {
		t.Fatal(err)
	}
	<-closed
}

func TestStartRefusesWhatItCannotServe(t *testing.T) {
	for _, c := range []struct {
		change brokertest.Option
		want   string
	}{
		{func(s *conf.Settings) { s.Listen = "0.0.0.0:0" }, "open"},
		{func(s *conf.Settings) { s.Buckets = 33 }, "buckets"},
		{func(s *conf.Settings) { s.Listen = "127.0.0.1:http" }, "listen"},
	} {
		if err := brokertest.TryStart(t, c.change); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want one about %s", err, c.want)
		}
	}
}

// A journal that has outgrown its locks is written anew, while requests go on; what is held survives.
func TestJournalIsCompacted(t *testing.T) {
	dir := t.TempDir()
	settings := brokertest.Settings(brokertest.WithData(dir))
	start := func() *broker.Daemon {
		d, err := broker.Start(context.Background(), broker.Config{
			Settings: settings, Logger: brokertest.Logger(t), LameDuck: 100 * time.Millisecond, CompactBytes: 64 << 10,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { brokertest.Stop(t, d) })
		return d
	}
	d := start()
	nc := connect(t, url(d), nats.MaxReconnects(0))
	held := ask(t, nc, "locks.acquire", `{"name":"held","ttl":"1h"}`).granted()
	first := filepath.Join(dir, "journal", "journal-00000001.log")
	for i := 0; ; i++ {
		if _, err := os.Stat(first); errors.Is(err, fs.ErrNotExist) {
			break
		}
		if i == 20_000 {
			t.Fatal("the first segment of the journal is still there")
		}
		g := ask(t, nc, "locks.acquire", fmt.Sprint("short/", i%100)).granted()
		ask(t, nc, "locks.release", `{"name":"`+g.text("name")+`","key":"`+g.text("key")+`"}`)
	}
	brokertest.Stop(t, d)
	d = start()
	nc = connect(t, url(d))
	ask(t, nc, "locks.renew", `{"name":"held","key":"`+held.text("key")+`"}`).granted()
	if n := len(ask(t, nc, "locks.list", "").fields["locks"].([]any)); n != 1 {
		t.Errorf("%d locks after the restart, one was held", n)
	}
}

// After a start that may have lost answered changes nothing is granted until every lease of before is over: who does not
// wait is told so, who waits is granted then, and holders go on meanwhile.
func TestUncleanStartWaitsForLeases(t *testing.T) {
	dir := t.TempDir()
	const recovery = 3 * time.Second // what is asked while it lasts must come in time, also on a busy machine
	lease := func(s *conf.Settings) { s.MaxLease, s.SessionLease = recovery, recovery }
	d := brokertest.Start(t, brokertest.WithData(dir), lease)
	nc := connect(t, url(d), nats.MaxReconnects(0))
	held := ask(t, nc, "locks.acquire", `{"name":"held","ttl":"1h"}`).granted()
	// As the disk would be after a crash, with the word that the journal leaves when the disk had failed it.
	crashed := t.TempDir()
	if err := os.CopyFS(crashed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(crashed, "journal", "failed"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"auth.json", "identifier"} {
		if err := os.Chmod(filepath.Join(crashed, name), 0o600); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}

	d = brokertest.Start(t, brokertest.WithData(crashed), lease)
	nc = connect(t, url(d))
	waiting := begin(t, nc, "locks.acquire", `{"name":"free","wait":"30s"}`)
	if body := ask(t, nc, "locks.acquire", "other").refused(503, "unavailable"); body["why"] != "recovery" || body["retry_after"] == nil {
		t.Errorf("refused as %v", body)
	}
	if body := ask(t, nc, "locks.renew", `{"name":"held","key":"`+held.text("key")+`"}`).refused(503, "unavailable"); body["why"] != "recovery" {
		t.Errorf("a renew by who may not trust the lock any more is refused as %v", body)
	}
	ask(t, nc, "locks.renew", `{"name":"held","trusted":true,"key":"`+held.text("key")+`"}`).granted()
	waiting.answer().granted()
	ask(t, nc, "locks.acquire", `{"name":"other","wait":"30s"}`).granted() // each bucket's recovery ends by itself
}

// A journal that was put back from a copy, beside the control store of now, may lack what was answered since: the node begins another
// life, so nothing is granted until every lease of before is over. The next start is one like any other.
func TestAnOldJournalAlone(t *testing.T) {
	dir, copied := t.TempDir(), t.TempDir()
	const recovery = 3 * time.Second // what is asked while it lasts must come in time, also on a busy machine
	lease := func(s *conf.Settings) { s.MaxLease, s.SessionLease = recovery, recovery }
	run := func(do func(nc *nats.Conn)) {
		d := brokertest.Start(t, brokertest.WithData(dir), lease)
		do(connect(t, url(d), nats.MaxReconnects(0)))
		brokertest.Stop(t, d)
	}
	granted := func(name string) func(nc *nats.Conn) {
		return func(nc *nats.Conn) { ask(t, nc, "locks.acquire", `{"name":"`+name+`","ttl":"1h"}`).granted() }
	}
	run(granted("a"))
	if err := os.CopyFS(copied, os.DirFS(filepath.Join(dir, "journal"))); err != nil {
		t.Fatal(err)
	}
	run(granted("b"))
	if err := os.RemoveAll(filepath.Join(dir, "journal")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "journal"), os.DirFS(copied)); err != nil {
		t.Fatal(err)
	}
	run(func(nc *nats.Conn) {
		if body := ask(t, nc, "locks.acquire", "b").refused(503, "unavailable"); body["why"] != "recovery" {
			t.Errorf("refused as %v", body)
		}
		for _, name := range []string{"b", "c"} { // each bucket's recovery ends by itself
			ask(t, nc, "locks.acquire", `{"name":"`+name+`","ttl":"1h","wait":"30s"}`).granted()
		}
	})
	run(granted("d"))
}
