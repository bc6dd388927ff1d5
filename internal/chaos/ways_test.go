package chaos

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/internal/e2e/daemons"
	"github.com/opencluster/oclocks/subjects"
)

// A run in which something did not come about has proved nothing about that.
func TestWaysThatWereNotTried(t *testing.T) {
	whole := Ways{Links: 2, Passed: 7, Lanes: 3, Bundled: 5}
	if err := whole.proved(); err != nil {
		t.Error(err)
	}
	for name, none := range map[string]func(w *Ways){
		"links": func(w *Ways) { w.Links = 0 }, "passed": func(w *Ways) { w.Passed = 0 }, "lanes": func(w *Ways) { w.Lanes = 0 },
		"bundled": func(w *Ways) { w.Bundled = 0 },
	} {
		w := whole
		if none(&w); w.proved() == nil {
			t.Errorf("without %s: %v", name, w)
		}
	}
	sum := whole
	if sum.add(&whole); sum.Passed != 14 || sum.Bundled != 10 {
		t.Errorf("twice %v is %v", whole, sum)
	}
}

// What daemons pass on over their direct links is counted, for each process by itself.
func TestPassedIsCounted(t *testing.T) {
	c := brokertest.StartCluster(t, 2, t.TempDir(), func(s *conf.Settings) { s.HTTP = "127.0.0.1:0" })
	nc, err := nats.Connect(c.Daemons[0].URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	read := func() int {
		t.Helper()
		n, err := readCounts(t.Context(), c.Daemons[0].HTTPAddr())
		if err != nil {
			t.Fatal(err)
		}
		return n.passed
	}
	for end, i := time.Now().Add(patience), 0; read() < 3; i++ { // until there is a link, and the other node has buckets
		if time.Now().After(end) {
			t.Fatal("nothing is passed on")
		}
		name := fmt.Sprintf(`{"name":"x%d"}`, i)
		if _, err := nc.Request("locks.acquire.anyone", []byte(name), patience); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := readCounts(t.Context(), "127.0.0.1:0"); err == nil {
		t.Errorf("nobody has counted %v", n)
	}
	var all counted
	one, another := new(daemons.Process), new(daemons.Process)
	all.set(one, counts{passed: read(), bundled: 4})
	all.set(one, counts{passed: 1, bundled: 1}) // it cannot have fewer: this was asked earlier
	all.set(another, counts{passed: 2})
	if want := (counts{passed: read() + 2, bundled: 4}); all.sum() != want {
		t.Errorf("%v of %v", all.sum(), want)
	}
}

// What a bucket has lost is lost to those that it was split into, until all their copies have begun.
func TestHalvesThatHaveNotBegun(t *testing.T) {
	var s splits
	nodes := []subjects.ClusterNode{{Number: 1, Answered: true}, {Number: 2, Answered: true}}
	see := func(total uint32, poor ...uint32) {
		all := &subjects.Cluster{Total: total, Nodes: nodes}
		for _, b := range poor {
			all.Buckets = append(all.Buckets, subjects.ClusterBucket{Bucket: b})
		}
		s.seen(all)
	}
	expect := func(when string, open bool, b, total uint32, want ...uint32) {
		t.Helper()
		if got := s.hangOn(b, total); !slices.Equal(got, want) || s.open() != open {
			t.Errorf("%s: %v hang on %d of %d, not %v; to be split: %t", when, got, b, total, want, s.open())
		}
	}
	see(2)
	expect("nothing was split", false, 0, 2)
	s.expect(time.Hour)
	expect("a command goes on", true, 0, 2)
	s.expect(0)
	expect("who is asked knows more already", false, 1, 4, 3)
	see(4, 0, 2, 3) // bucket 0 has its copies: that it is poor now does not matter
	expect("two halves have no copies", true, 0, 4, 2)
	expect("two halves have no copies", true, 1, 4, 3)
	see(8, 2, 3, 4, 5, 6, 7)
	expect("they are split as well", true, 0, 8, 2, 4, 6)
	expect("they are split as well", true, 2, 8, 6)
	nodes[1].Answered = false
	see(8)
	expect("nobody knows what node 2 has", true, 1, 8, 3, 5, 7)
	nodes[1].Answered = true
	see(8, 3)
	expect("one is left", true, 1, 8, 3)
	expect("one is left", true, 0, 8)
	see(8)
	expect("all have begun", false, 1, 8)
}
