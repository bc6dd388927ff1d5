package journal

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	dir = "/j"

	far   = 20 * time.Second // longer than any test waits for what must come
	never = time.Hour        // SyncEvery of the tests in which nothing may happen by itself
)

func boot(id string) func() (string, error) { return func() (string, error) { return id, nil } }

// options are those of most tests: a disk in memory, no fsync that was not asked for, always the same boot id.
func options(d *disk) Options { return Options{FS: d, SyncEvery: never, BootID: boot("one")} }

func open(t testing.TB, opts Options) (*Journal, *Replay) {
	t.Helper()
	j, replay, err := Open(dir, opts)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { check(t, ignoreFailed(j.Close(false))) })
	return j, replay
}

func ignoreFailed(err error) error {
	if err != nil && bytes.Contains([]byte(err.Error()), []byte(ErrFailed.Error())) {
		return nil
	}
	return err
}

// failer is what *testing.T and *rapid.T have in common here.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func check(t failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// entry is a record as Each gives it.
type entry struct {
	bucket  uint32
	seq     uint64
	kind    Kind
	payload string
}

func (e entry) String() string {
	text := e.payload
	if len(text) > 12 {
		text = fmt.Sprintf("%.12s… %d bytes", text, len(text))
	}
	return fmt.Sprintf("%d/%d %v %q", e.bucket, e.seq, e.kind, text)
}

func (e entry) record() Record {
	return Record{Bucket: e.bucket, Seq: e.seq, Kind: e.kind, Payload: []byte(e.payload)}
}

func records(entries []entry) []Record {
	batch := make([]Record, len(entries))
	for i, e := range entries {
		batch[i] = e.record()
	}
	return batch
}

func entries(t failer, replay *Replay) []entry {
	t.Helper()
	var all []entry
	check(t, replay.Each(func(bucket uint32, seq uint64, kind Kind, payload []byte) error {
		all = append(all, entry{bucket, seq, kind, string(payload)})
		return nil
	}))
	return all
}

// replayOf is what is to be given back of what was appended: for each bucket from its newest snapshot.
func replayOf(appended []entry) []entry {
	start := map[uint32]int{}
	for i, e := range appended {
		if e.kind == Snapshot {
			start[e.bucket] = i
		}
	}
	var want []entry
	for i, e := range appended {
		if i >= start[e.bucket] {
			want = append(want, e)
		}
	}
	return want
}

func same(t failer, got, want []entry) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Fatalf("%d of %d records are missing, the first is %v", len(want)-i, len(want), want[i])
		case i >= len(want):
			t.Fatalf("%d records too many, the first is %v", len(got)-i, got[i])
		case got[i] != want[i]:
			t.Fatalf("record %d is %v, want %v", i, got[i], want[i])
		}
	}
}

// prefix gives how many of the appended records were there, given what came back; -1 if it is no prefix.
func prefix(appended, got []entry) int {
	for n := len(appended); n >= 0; n-- {
		want := replayOf(appended[:n])
		if len(want) != len(got) {
			continue
		}
		equal := true
		for i := range want {
			equal = equal && want[i] == got[i]
		}
		if equal {
			return n
		}
	}
	return -1
}

// script makes records for a number of buckets.
type script struct {
	rng     *rand.Rand
	buckets int
	seqs    map[uint32]uint64
}

func newScript(seed uint64, buckets int) *script {
	return &script{rng: rand.New(rand.NewPCG(seed, 1)), buckets: buckets, seqs: map[uint32]uint64{}}
}

func (s *script) text(limit int) string {
	b := make([]byte, s.rng.IntN(limit))
	for i := range b {
		b[i] = byte(s.rng.Uint32())
	}
	return string(b)
}

func (s *script) change() entry {
	bucket := uint32(s.rng.IntN(s.buckets))
	s.seqs[bucket]++
	return entry{bucket, s.seqs[bucket], Change, s.text(100)}
}

func (s *script) changes(n int) []entry {
	batch := make([]entry, n)
	for i := range batch {
		batch[i] = s.change()
	}
	return batch
}

func (s *script) snapshot(bucket uint32, size int) entry {
	return entry{bucket, s.seqs[bucket], Snapshot, s.text(size)}
}

// waitFor looks at a condition until it holds.
func waitFor(t testing.TB, what string, cond func() bool) {
	t.Helper()
	end := time.After(far)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for !cond() {
		select {
		case <-end:
			t.Fatalf("waited in vain for %s", what)
		case <-tick.C:
		}
	}
}
