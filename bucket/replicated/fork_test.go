package replicated

import (
	"fmt"
	"testing"
	"time"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/subjects"
)

// alone is a world of one node whose bucket 3 of 8 has some locks, of which some will belong to bucket 11.
func alone(t *testing.T) (*world, *host) {
	t.Helper()
	w := newWorld(t, 1)
	h := w.nodes[0]
	w.pass(0, func(*host) bool { return true })
	w.round(h)
	for i, n := 0, 0; n < 20; i++ {
		if name := fmt.Sprint("n", i); subjects.BucketOf(name, 8) == 3 {
			w.acquire(name, name, 0)
			n++
		}
	}
	w.round(h)
	w.round(h)
	return w, h
}

// split has the node split its bucket, and gives what the other one begins with.
func split(t *testing.T, w *world, h *host) Fork {
	t.Helper()
	h.b.Tick(w.clock())
	if !h.b.Grow(w.clock(), 16, true) {
		t.Fatal("the bucket is not split")
	}
	w.round(h)
	if len(h.out.Forks) != 1 || h.out.Forks[0].Bucket != 11 || !h.out.Forks[0].Start.Unstored {
		t.Fatalf("%+v", h.out.Forks)
	}
	return h.out.Forks[0]
}

func half(t *testing.T, w *world, h *host, start Start) *Bucket {
	t.Helper()
	cfg := w.config(h)
	cfg.Table.Bucket, cfg.Table.Buckets, cfg.Chain.Bucket = 11, 16, 11
	b, err := New(cfg, start)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// However much of a half's first records has come to the journal, a restart knows whether it has the half.
func TestAHalfIsRecordedBeforeAnythingElse(t *testing.T) {
	w, h := alone(t)
	start := split(t, w, h).Start
	start.Stored = "stored"
	b := half(t, w, h, start)
	if next := b.Next(w.now); next > w.now {
		t.Fatalf("it is due at %d, now is %d", next, w.now)
	}
	if err := b.Chain().Install(chain.View{Epoch: 2, Chain: w.view.Chain, InSync: 1}); err != nil {
		t.Fatal(err)
	}
	var out Output
	b.Tick(w.clock())
	b.Round(w.clock(), &out)
	if len(out.Records) != 2 || !out.Records[0].Whole || len(out.Marks) != 1 || out.Marks[0].Mark != "stored" {
		t.Fatalf("%d records, the first whole: %v, marks %v", len(out.Records), out.Records[0].Whole, out.Marks)
	}
	again := restarted(t, b.cfg, out.Records)
	if got, want := again.Table().Describe(), start.Table.Describe(); got != want || start.Table.Totals().Holds == 0 {
		t.Fatalf("after a restart\n%s\nbefore\n%s", got, want)
	}
}

// The change that split a bucket is all that the journal has of the half until that has begun: no image goes before.
func TestImageWaitsForTheHalf(t *testing.T) {
	w, h := alone(t)
	h.b.Image(w.now, "image")
	fork := split(t, w, h)
	for range 3 {
		w.round(h)
		if len(h.out.Marks) != 0 || h.b.Turned() != Later {
			t.Fatalf("marks %v, turned %d", h.out.Marks, h.b.Turned())
		}
	}
	replay := restarted(t, w.config(h), h.records)
	if len(replay.halves) != 1 || replay.halves[0].Table.Describe() != fork.Start.Table.Describe() {
		t.Fatal("after a restart the half is gone")
	}
	h.b.Begun()
	w.round(h)
	if len(h.out.Marks) != 1 || h.out.Marks[0].Lost || len(h.records) != 1 || h.b.Turned() != Taken {
		t.Fatalf("marks %v, %d records, turned %d", h.out.Marks, len(h.records), h.b.Turned())
	}
	if replay = restarted(t, w.config(h), h.records); len(replay.halves) != 0 || replay.Table().Buckets() != 16 {
		t.Fatal("what has begun begins again")
	}
}

// An image that is waited for too long is lost, and asked for again.
func TestImageDoesNotWaitForEver(t *testing.T) {
	w, h := alone(t)
	split(t, w, h)
	h.b.Image(w.now, "image")
	w.pass(imageHold, func(*host) bool { return true })
	w.round(h)
	if len(h.out.Marks) != 1 || !h.out.Marks[0].Lost || h.b.Turned() != Taken {
		t.Fatalf("marks %v, turned %d", h.out.Marks, h.b.Turned())
	}
}

// While answered changes may be missing nothing is given away: the other bucket would grant at once. When that is over, nothing
// is given to those who wait before the bucket is split: the other bucket may live elsewhere by then, and have given it to others.
func TestARecoveredTableIsSplitBeforeItGrants(t *testing.T) {
	w, h := alone(t)
	waits := map[uint32]string{} // by bucket, of 16: a name that somebody waits for, behind one with a short lease
	for i := 0; len(waits) < 2; i++ {
		name := fmt.Sprint("m", i)
		at := subjects.BucketOf(name, 16)
		if at != 3 && at != 11 || waits[at] != "" {
			continue
		}
		waits[at] = name
		first := &ask{user: "first", reply: "_INBOX.first." + name}
		first.req = subjects.Request{Op: subjects.OpAcquire, Name: name, TTL: 500 * time.Millisecond, Has: subjects.HasTTL}
		w.asked["first "+name], w.order = first, append(w.order, "first "+name)
		w.send(first)
		w.acquire(name, name, time.Hour)
	}
	w.round(h)
	w.round(h)
	recover := w.view.Clone()
	recover.Epoch++
	recover.Recovery = true
	h.b.Chain().Seal(w.view.Epoch)
	w.commit(recover)
	for range 40 {
		w.pass(50*ms, func(*host) bool { return true })
		h.b.Tick(w.clock())
		if h.b.Grow(w.clock(), 16, false) || h.b.recovering && h.b.Grow(w.clock(), 16, true) {
			t.Fatal("split in a recovery")
		}
		w.round(h)
	}
	if w.view.Recovery || h.b.recovering {
		t.Fatal("the recovery does not end")
	}
	if next := h.b.Next(w.now); next > w.now {
		t.Fatalf("the bucket is due in %d ms, and is to be split now", (next-w.now)/ms)
	}
	w.pass(5*recoveryStep, func(*host) bool { return true }) // nobody had time for it
	fork := split(t, w, h)
	for range 40 {
		w.pass(50*ms, func(*host) bool { return true })
		w.round(h)
	}
	if own, other := w.asked[waits[3]], w.asked[waits[11]]; own.grant == nil || other.told != "" {
		t.Fatalf("after the recovery who waits here was told %q, and who waits for a name of the other bucket %q", own.told, other.told)
	}
	if fork.Start.Table.Totals().Waiters != 1 {
		t.Fatalf("the other bucket has not got who waits for its name:\n%s", fork.Start.Table.Describe())
	}
}

// What the primary of a table that is to be split has kept to itself is not told by who follows it either (seed 59600588, theme halves).
func TestASecondaryKeepsToItselfWhatItsPrimaryDid(t *testing.T) {
	w := newWorld(t, 2)
	count := uint32(8)
	run := func(rounds int) {
		for range rounds {
			w.pass(20*ms, func(*host) bool { return true })
			for _, h := range w.nodes {
				h.b.Tick(w.clock())
				h.b.Grow(w.clock(), count, true)
				w.round(h)
			}
			for len(w.net) > 0 {
				w.deliver(0)
			}
		}
	}
	run(50)
	waits := map[uint32]string{} // by bucket, of 16: whose wait ends in the recovery
	for i := 0; len(waits) < 2; i++ {
		name := fmt.Sprint("m", i)
		if at := subjects.BucketOf(name, 16); (at == 3 || at == 11) && waits[at] == "" {
			waits[at] = "wait " + name
			w.acquire("hold "+name, name, 0)
			w.acquire(waits[at], name, 500*time.Millisecond)
		}
	}
	run(5)
	recover := w.view.Clone()
	recover.Epoch++
	recover.Recovery = true
	w.nodes[0].b.Chain().Seal(w.view.Epoch)
	w.commit(recover)
	count = 16
	for range 100 {
		if run(1); !w.view.Recovery && w.nodes[1].b.Table().Buckets() == 16 {
			break
		}
	}
	if w.view.Recovery || w.view.InSync != 2 || w.nodes[1].b.Table().Buckets() != 16 || w.nodes[1].b.Table().Totals().Waiters != 0 {
		t.Fatalf("not split: %v\n%s", w.view, w.nodes[1].b.Table().Describe())
	}
	if err := w.nodes[0].b.Chain().HandOver(w.view.Chain[1]); err != nil {
		t.Fatal(err)
	}
	run(20)
	if !w.nodes[1].b.acting {
		t.Fatalf("not handed over: %v", w.view)
	}
	if told := w.asked[waits[11]].told; told != "" {
		t.Fatalf("who waited for a name of the other bucket is told %q", told)
	}
}

// A copy that had nothing has begun all the other buckets. What it gets then may be from before the splits, and is split all the
// same, when it is primary: there may be others who wait for that to begin them.
func TestWhatComesLaterIsSplitToo(t *testing.T) {
	w := newWorld(t, 2)
	old, late := w.nodes[0], w.nodes[1]
	late.b.Tick(w.clock())
	if late.b.Grow(w.clock(), 32, true) {
		t.Fatal("there is nothing to split")
	}
	w.round(late)
	if len(late.out.Forks) != 2 {
		t.Fatalf("%+v", late.out.Forks)
	}
	for range 100 {
		w.pass(10*ms, func(*host) bool { return true })
		for _, h := range w.nodes {
			w.round(h)
		}
		for len(w.net) > 0 {
			w.deliver(0)
		}
	}
	if late.b.Table().Buckets() != 8 || w.view.Place(late.b.Chain().Self()) != 1 {
		t.Fatalf("it has not got the table: %d buckets, %v", late.b.Table().Buckets(), w.view)
	}
	old.b = nil
	w.pass(nodeLease, func(h *host) bool { return h == late })
	if !w.takeover() {
		t.Fatal("nobody takes over")
	}
	for _, buckets := range []uint32{16, 32} {
		for range 3 {
			w.pass(10*ms, func(*host) bool { return true })
			w.round(late)
		}
		if !late.b.Grow(w.clock(), 32, true) || late.b.Table().Buckets() != buckets {
			t.Fatalf("the table counts %d buckets and is not split", late.b.Table().Buckets())
		}
	}
}

// A node that has no copy of a bucket has nothing to wait for when that is split: the other one begins there with nothing.
func TestACopyThatHasNothingIsSplitAtOnce(t *testing.T) {
	w := newWorld(t, 2)
	h := w.nodes[1]
	if h.b.Grow(w.clock(), 32, true) {
		t.Fatal("there is nothing to split")
	}
	w.round(h)
	if len(h.out.Forks) != 2 || h.out.Forks[0].Bucket != 11 || h.out.Forks[1].Bucket != 19 || h.out.Forks[0].Start.Table != nil {
		t.Fatalf("%+v", h.out.Forks)
	}
	w.round(h)
	if len(h.out.Forks) != 0 {
		t.Fatalf("again: %+v", h.out.Forks)
	}
	member := w.nodes[0] // in the view: what it gets may yet be split
	if member.b.Grow(w.clock(), 32, true) {
		t.Fatal("there is nothing to split")
	}
	w.round(member)
	if len(member.out.Forks) != 0 {
		t.Fatalf("%+v", member.out.Forks)
	}
}

// A copy that was away while the number of buckets was doubled twice finds both changes at once. It begins both buckets with what
// it gave them, whether it hears of the changes from a neighbour or finds them in its journal.
func TestTwoSplitsAtOnce(t *testing.T) {
	w, h := alone(t)
	split(t, w, h)
	h.b.Begun()
	if !h.b.Grow(w.clock(), 32, true) {
		t.Fatal("the bucket is not split again")
	}
	w.round(h)
	if len(h.out.Forks) != 1 || h.out.Forks[0].Bucket != 19 {
		t.Fatalf("%+v", h.out.Forks)
	}
	both := func(name string, b *Bucket) {
		t.Helper()
		var out Output
		b.Tick(w.clock())
		b.Round(w.clock(), &out)
		if len(out.Forks) != 2 || out.Forks[0].Bucket != 11 || out.Forks[1].Bucket != 19 ||
			out.Forks[0].Start.Table == nil || out.Forks[1].Start.Table == nil {
			t.Fatalf("%s: %+v", name, out.Forks)
		}
	}
	both("a restart", restarted(t, w.config(h), h.records))
	for n := len(h.records) - 1; n > 0; n-- { // the end of the history is there, and not known to be confirmed
		cfg := w.config(h)
		b := restarted(t, cfg, h.records[:n])
		if len(b.halves) != 1 {
			continue
		}
		if err := b.Chain().Install(chain.View{Epoch: 2, Chain: w.view.Chain, InSync: 1}); err != nil {
			t.Fatal(err)
		}
		b.Chain().Applied(w.change)
		b.Chain().Grant(chain.Lease{Until: w.now + nodeLease, Under: w.change})
		var out Output
		for range 4 {
			b.Tick(w.clock())
			b.Round(w.clock(), &out)
		}
		if len(out.Forks) == 0 || out.Forks[0].Bucket != 11 || out.Forks[0].Start.Table == nil {
			t.Fatalf("after %d of %d records: %+v", n, len(h.records), out.Forks)
		}
	}
}

// A copy that begins with nothing when there are more buckets by then than its own number needs begins those too that were split
// off its bucket since. Nobody else on its node would.
func TestAMissedHalfIsSplitToo(t *testing.T) {
	w := newWorld(t, 2)
	h := w.nodes[1]
	if h.b.Grow(w.clock(), 32, true) {
		t.Fatal("there is nothing to split")
	}
	w.round(h)
	cfg := w.config(h)
	cfg.Table.Bucket, cfg.Table.Buckets, cfg.Chain.Bucket = 11, 32, 11
	b, err := New(cfg, h.out.Forks[0].Start)
	if err != nil {
		t.Fatal(err)
	}
	view := chain.View{Epoch: 3, Chain: w.view.Chain, InSync: 1}
	if err := b.Chain().Install(view); err != nil {
		t.Fatal(err)
	}
	b.Tick(w.clock())
	if b.Grow(w.clock(), 32, true) {
		t.Fatal("there is nothing to split")
	}
	var out Output
	b.Round(w.clock(), &out)
	if len(out.Forks) != 1 || out.Forks[0].Bucket != 27 || out.Forks[0].Start.Table != nil {
		t.Fatalf("%+v", out.Forks)
	}
}
