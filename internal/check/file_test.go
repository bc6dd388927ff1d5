package check_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/opencluster/oclocks/internal/check"
	"github.com/opencluster/oclocks/subjects"
)

// TestRecordingsOfManyProcesses: what many clients record is, merged, the history.
func TestRecordingsOfManyProcesses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		history := newNaive(rapid.Uint64().Draw(t, "seed")).run(3 * time.Second)
		files := map[string]*bytes.Buffer{}
		writers := map[string]*check.Writer{}
		var order []string
		for i := range history {
			e := &history[i]
			if writers[e.Client] == nil {
				files[e.Client] = &bytes.Buffer{}
				writers[e.Client] = check.NewWriter(files[e.Client], nil)
				order = append(order, e.Client)
			}
			if err := writers[e.Client].Add(e); err != nil {
				t.Fatal(err)
			}
		}
		var recordings []io.Reader
		for _, client := range order {
			recordings = append(recordings, files[client])
		}
		merged := check.Merge(recordings...)
		last, n := int64(0), 0
		byClient := map[string][]check.Event{}
		for {
			e, err := merged.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil || e.At < last {
				t.Fatalf("event %d at %d, after %d: %v", n, e.At, last, err)
			}
			last = e.At
			byClient[e.Client] = append(byClient[e.Client], *e)
			n++
		}
		if n != len(history) {
			t.Fatalf("%d events of %d", n, len(history))
		}
		for i := range history {
			e := history[i]
			if got := byClient[e.Client][0]; !reflect.DeepEqual(got, e) {
				t.Fatalf("got  %+v\nwant %+v", got, e)
			}
			byClient[e.Client] = byClient[e.Client][1:]
		}
	})
}

// TestEveryFieldIsRecorded: a field that is forgotten in the recording is noticed.
func TestEveryFieldIsRecorded(t *testing.T) {
	e := check.Event{
		At: 1, Kind: check.Doubt, Op: subjects.OpForce, Zone: "z", Client: "c", Session: "s", Request: "r", Of: "o", Name: "n", Mode: subjects.Semaphore,
		Hold: subjects.Connection, Drain: subjects.Timed, Take: 2, Slots: 3, Code: 4, Reason: "a", Why: "b", Was: "d", Token: 1<<53 - 1, Ticket: 6,
		Key: 1<<64 - 1, TTL: 7, Lease: 8, Grace: -1, Wait: 9, Until: check.Never, Since: 10, Plain: true, Now: true, Ended: true, Weak: true, Part: true,
		Current: true, Incarnation: 1<<64 - 1, Place: "p", Newest: 11, Oldest: 12, Tokens: 13, Holders: []check.Holder{{Token: 1, Client: "x"}}, Queue: []check.Waiter{{Ticket: 2, Client: "y"}},
		Bucket: 14, Buckets: 15,
	}
	for i, v := 0, reflect.ValueOf(e); i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("this test sets no %s", v.Type().Field(i).Name)
		}
	}
	var file bytes.Buffer
	if err := check.NewWriter(&file, nil).Add(&e); err != nil {
		t.Fatal(err)
	}
	got, err := check.NewReader(&file).Next()
	if err != nil || !reflect.DeepEqual(*got, e) {
		t.Fatalf("%v\ngot  %+v\nwant %+v", err, got, e)
	}
}

// TestRecordingOfAKilledProcess: what was being written is left out; anything else that is no event is an error.
func TestRecordingOfAKilledProcess(t *testing.T) {
	const good = `{"at":1,"kind":"died","zone":"z","client":"c"}` + "\n"
	r := check.NewReader(strings.NewReader(good + good[:20]))
	if _, err := r.Next(); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) || !r.Torn() {
		t.Fatalf("%v, torn %t", err, r.Torn())
	}
	for _, bad := range []string{
		"{}\n", "x\n", `{"at":1,"kind":"none"}` + "\n", `{"at":1,"kind":"ask","op":"dance"}` + "\n", `{"at":1,"kind":"died","colour":1}` + "\n",
		`{"at":1,"kind":"ask","mode":"odd"}` + "\n", strings.Replace(good, "1", "5", 1) + good,
	} {
		m := check.Merge(strings.NewReader(bad))
		if err := check.New(check.Options{}).Read(m); err == nil || !strings.Contains(err.Error(), "recording 0: read a recording, line") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestWriterRefuses: what cannot be recorded is an error, and nothing is written.
func TestWriterRefuses(t *testing.T) {
	for _, e := range []check.Event{{At: 1}, {At: 1, Kind: 200}, {At: 1, Kind: check.Ask, Name: "\xff"}, {At: 1, Kind: check.Ask, Mode: 9}} {
		var file bytes.Buffer
		w := check.NewWriter(&file, nil)
		if err := w.Add(&e); err == nil || file.Len() > 0 {
			t.Errorf("%+v: %v, %q", e, err, &file)
		}
		if err := w.Add(&check.Event{At: 1, Kind: check.Died}); err == nil {
			t.Errorf("it goes on after an error")
		}
	}
}

// TestWriterStamps: the time is taken when an event is written, and never goes back.
func TestWriterStamps(t *testing.T) {
	var file bytes.Buffer
	now := int64(100)
	w := check.NewWriter(&file, func() int64 { now -= 10; return now })
	for range 3 {
		if err := w.Add(&check.Event{Kind: check.Died, Client: "c"}); err != nil {
			t.Fatal(err)
		}
	}
	r := check.NewReader(&file)
	for range 3 {
		if e, err := r.Next(); err != nil || e.At != 90 {
			t.Fatalf("%+v %v", e, err)
		}
	}
}

// TestMergeOfOneInstant: of events of the same time, those that end something come first.
func TestMergeOfOneInstant(t *testing.T) {
	one := strings.NewReader(`{"at":5,"kind":"believe","client":"b"}` + "\n")
	two := strings.NewReader(`{"at":5,"kind":"died","client":"a"}` + "\n")
	m := check.Merge(one, two)
	if e, err := m.Next(); err != nil || e.Kind != check.Died {
		t.Fatalf("%+v %v", e, err)
	}
}
