package top

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"
	"go.uber.org/goleak"

	"github.com/opencluster/oclocks/internal/cli/output"
	"github.com/opencluster/oclocks/subjects"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var testNow = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func now() time.Time { return testNow }

// fake is a broker with some locks, in pages as small as it likes.
type fake struct {
	locks   []subjects.Record
	perPage int
	err     error
	asked   []subjects.Request
}

func (f *fake) Info(context.Context) (*subjects.Info, error) {
	return &subjects.Info{Cluster: "C1", Zone: "default", Node: "n1", Mode: "normal"}, f.err
}

func (f *fake) List(_ context.Context, req *subjects.Request) (*subjects.Page, error) {
	f.asked = append(f.asked, *req)
	var match []subjects.Record
	for _, r := range f.locks {
		if (req.State == subjects.Waited && r.Waiting > 0 || req.State == subjects.Held && r.Held) && strings.HasPrefix(r.Name, req.Prefix) {
			match = append(match, r)
		}
	}
	from := 0
	if req.After != "" {
		from, _ = strconv.Atoi(req.After)
	}
	to := min(len(match), from+min(f.perPage, int(req.Limit)))
	page := &subjects.Page{Locks: match[from:to]}
	if to < len(match) {
		page.Next = strconv.Itoa(to)
	}
	return page, f.err
}

// lock makes a record: held for so long, with so many waiters.
func lock(name string, held time.Duration, waiting int) subjects.Record {
	r := subjects.Record{Name: name, Held: true, Waiting: waiting,
		Holders: []subjects.Holder{{Holder: "host/" + name, User: "anyone", Since: testNow.Add(-held).UnixMilli()}}}
	for i := range min(waiting, 3) {
		r.Queue = append(r.Queue, subjects.Waiter{Ticket: uint64(i), Holder: "waiter/" + strconv.Itoa(i), User: "anyone",
			Since: testNow.Add(-time.Duration(10-i) * time.Second).UnixMilli()})
	}
	return r
}

func names(f *Frame) string {
	var all []string
	for _, r := range f.Locks {
		all = append(all, r.Name)
	}
	return strings.Join(all, " ")
}

func TestGatherSortsByQueue(t *testing.T) {
	source := &fake{perPage: 2, locks: []subjects.Record{
		lock("a", time.Second, 0), lock("b", time.Minute, 3), lock("c", time.Hour, 3), lock("d", time.Hour, 9), lock("e", time.Hour, 0),
		lock("f", time.Hour, 1),
	}}
	f, err := Gather(t.Context(), source, "", 100, now)
	if err != nil || names(f) != "d c b f e a" || f.Queued != 4 || f.Waiting != 16 || f.More {
		t.Errorf("%s, %+v, %v", names(f), f, err)
	}
	f, err = Gather(t.Context(), source, "", 3, now)
	if err != nil || names(f) != "d c b f" {
		t.Errorf("no room for those without a queue: %s, %v", names(f), err)
	}
	if f, err = Gather(t.Context(), source, "e", 100, now); err != nil || names(f) != "e" {
		t.Errorf("by prefix: %s, %v", names(f), err)
	}
}

func TestGatherIsBounded(t *testing.T) {
	source := &fake{perPage: 1000}
	for i := range 2 * maxScan {
		source.locks = append(source.locks, lock(fmt.Sprint(i), time.Second, 1))
	}
	f, err := Gather(t.Context(), source, "", 20, now)
	if err != nil || len(source.asked) > maxScan/1000 || !f.More || f.Queued != maxScan {
		t.Errorf("asked %d times, %d queued, more %v, %v", len(source.asked), f.Queued, f.More, err)
	}
}

// TestViews draws what testdata/views says: `draw width=… height=…` with one lock a line: name, seconds held, waiting.
func TestViews(t *testing.T) {
	datadriven.RunTest(t, filepath.Join("testdata", "views"), func(t *testing.T, d *datadriven.TestData) string {
		var width, height int
		d.ScanArgs(t, "width", &width)
		d.ScanArgs(t, "height", &height)
		source := &fake{perPage: 100}
		for line := range strings.Lines(d.Input) {
			var name string
			var held, waiting int
			if _, err := fmt.Sscanf(line, "%s %d %d", &name, &held, &waiting); err != nil {
				d.Fatalf(t, "%v", err)
			}
			if text, err := strconv.Unquote(name); err == nil {
				name = text
			}
			source.locks = append(source.locks, lock(name, time.Duration(held)*time.Second, waiting))
		}
		f, err := Gather(t.Context(), source, "", 100, now)
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
		return strings.Join(Lines(f, width, height), "\n") + "\n"
	})
}

func TestLinesFitTheScreen(t *testing.T) {
	f, err := Gather(t.Context(), &fake{perPage: 9, locks: []subjects.Record{
		lock(strings.Repeat("x", 4096), time.Second, 100000), lock("\x1b[2J", time.Second, 1), lock("größe/ü", time.Second, 0),
	}}, "", 9, now)
	if err != nil {
		t.Fatal(err)
	}
	for width := 1; width < 200; width++ {
		for height := heading; height < 8; height++ {
			lines := Lines(f, width, height)
			if len(lines) > height {
				t.Fatalf("%d lines on a screen of %d", len(lines), height)
			}
			for _, line := range lines {
				if n := len([]rune(line)); n > width || strings.Contains(line, "\x1b") {
					t.Fatalf("%d columns on a screen of %d: %q", n, width, line)
				}
			}
		}
	}
}

func TestRunPrintsWhereThereIsNoTerminal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	out, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	source := &fake{perPage: 9, locks: []subjects.Record{lock("a", time.Second, 2)}}
	o := Options{Out: out, Printer: &output.Printer{Out: out, Now: now}, Every: time.Millisecond, Timeout: time.Minute, Now: now}

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, source, o) }()
	deadline := time.Now().Add(20 * time.Second)
	for frames := 0; frames < 3; { // the file grows while it runs
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if frames = bytes.Count(text, []byte("1 lock has a queue, 2 waiting")); time.Now().After(deadline) {
			t.Fatal("no frames")
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("ended with %v", err)
	}

	o.Once, o.Printer.JSON = true, true
	if err := out.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), source, o); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || !bytes.Contains(text, []byte(`"name":"a","state":"held"`)) {
		t.Errorf("JSON: %s, %v", text, err)
	}
	source.err = errors.New("no broker")
	if err := Run(t.Context(), source, o); !errors.Is(err, source.err) {
		t.Errorf("got %v", err)
	}
}
