package chaos

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/internal/check"
)

// What a crowd asks for comes in bundles, and each of its workers is a client of the history, which holds nothing against them.
func TestCrowd(t *testing.T) {
	cluster := brokertest.StartCluster(t, 2, t.TempDir(), func(s *conf.Settings) { s.HTTP = "127.0.0.1:0" })
	h := newHistory(check.Options{})
	tape := h.begin(filepath.Join(t.TempDir(), "crowd"))
	rec, err := newRecorder(tape.path)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.file.Close()
	defer rec.marks.Close()
	r := &role{Process: "p1.1", Seed: 1, URLs: []string{cluster.Daemons[0].URL(), cluster.Daemons[1].URL()},
		Zones: []zone{{Name: conf.DefaultZone, User: "anyone"}, {Name: conf.DefaultZone, User: "anyone"}}, Pace: 1, Crowd: crowdSize}
	crowd := r.crowd(rec)
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	ended := make(chan error)
	go func() { ended <- claims(ctx, crowd, (*actor).mutex, (*actor).rwmutex, (*actor).semaphore) }()
	bundled := func() (sum int) {
		for _, d := range cluster.Daemons {
			n, err := readCounts(t.Context(), d.HTTPAddr())
			if err != nil {
				t.Fatal(err)
			}
			sum += n.bundled
		}
		return sum
	}
	asked := func() bool { // every worker is past its sprint
		rec.mark()
		wrong, err := h.advance()
		if err != nil || len(wrong) > 0 {
			t.Fatal(wrong, err)
		}
		return h.operations > crowdSize*(sprint+10)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !asked() || bundled() == 0 {
		select {
		case <-tick.C:
		case err := <-ended:
			t.Fatalf("after %d requests, %d in bundles: %v", h.operations, bundled(), err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	tape.ended = true
	if wrong, err := h.advance(); err != nil || len(wrong) > 0 {
		t.Fatal(wrong, err)
	}
	h.checker.End(boottime.Now(), true)
	if wrong := h.fresh(); len(wrong) > 0 {
		t.Error(wrong)
	}
	text, err := os.ReadFile(tape.path)
	if err != nil {
		t.Fatal(err)
	}
	who := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		who[field(line, "client")] = true
	}
	if len(who) != crowdSize || !who[actorName("p1.1", actors)] {
		t.Errorf("in the history are %v", who)
	}
}

// That an acquire goes on as a new request is told of the worker whose it is, though others wait for the same lock with the same client.
func TestAnewIsTheWorkers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "anew")
	rec, err := newRecorder(path)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.file.Close()
	defer rec.marks.Close()
	r := &role{Process: "p1.1", Zones: []zone{{Name: "z"}}, Crowd: 3}
	crowd := r.crowd(rec)
	for _, a := range crowd {
		a.await("7", "x")
	}
	log := slog.New(&overhear{slog.NewTextHandler(t.Output(), nil), crowd})
	log.Info("a request goes on as a new one", "anew", "x", "holder", crowd[1].id)
	log.Info("a request goes on as a new one", "anew", "y", "holder", crowd[2].id)
	log.Info("something else", "holder", crowd[0].id)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if line := string(text); strings.Count(line, "\n") != 1 || field(line, "kind") != "anew" || field(line, "client") != crowd[1].id {
		t.Errorf("%s", line)
	}
}

// Workers of a crowd go on together, and a beat that nobody waits for does not come.
func TestDrum(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, begin := &drum{}, time.Now()
		var all sync.WaitGroup
		for i := range 3 {
			all.Go(func() {
				<-time.After(time.Duration(i) * time.Millisecond)
				d.wait(t.Context(), beat)
				if took := time.Since(begin); took != beat {
					t.Errorf("worker %d goes on after %s", i, took)
				}
			})
		}
		all.Wait()
		synctest.Wait()
		d.mu.Lock()
		if d.next != nil {
			t.Error("there is a beat that nobody waits for")
		}
		d.mu.Unlock()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if d.wait(ctx, time.Hour); time.Since(begin) != beat {
			t.Errorf("who is to end waits for %s", time.Since(begin))
		}
	})
}
