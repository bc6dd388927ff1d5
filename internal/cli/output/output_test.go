package output

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/opencluster/oclocks/subjects"
)

// testNow is the time of every transcript: 2026-01-02 03:04:05 UTC.
var testNow = time.Date(2026, 1, 2, 3, 4, 5, 678_000_000, time.UTC)

// decoder is a body that can be read from JSON.
type decoder interface {
	subjects.Body
	DecodeJSON([]byte) error
}

func newBody(kind string) decoder {
	switch kind {
	case "grant":
		return &subjects.Grant{}
	case "queued":
		return &subjects.Queued{}
	case "released":
		return &subjects.Released{}
	case "cancelled":
		return &subjects.Cancelled{}
	case "forced":
		return &subjects.Forced{}
	case "checked":
		return &subjects.Checked{}
	case "record":
		return &subjects.Record{}
	case "opened":
		return &subjects.Opened{}
	case "closed":
		return &subjects.SessionClosed{}
	case "info":
		return &subjects.Info{}
	case "servers":
		return &subjects.Servers{}
	case "lock-event":
		return &subjects.LockEvent{}
	case "server-event":
		return &subjects.ServerEvent{}
	case "session-event":
		return &subjects.SessionEvent{}
	case "kept":
		return &subjects.Kept{}
	}
	return nil
}

// TestTranscripts prints what the files in testdata/golden have as JSON. A directive is `text|quiet|json KIND`, or `list` with
// flags text, quiet or json and one page a line.
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata/golden", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			var out bytes.Buffer
			p := &Printer{Out: &out, Now: func() time.Time { return testNow }, JSON: d.Cmd == "json", Quiet: d.Cmd == "quiet"}
			kind := d.CmdArgs[0].Key
			if kind == "list" {
				for line := range strings.SplitSeq(d.Input, "\n") {
					var page subjects.Page
					if err := page.DecodeJSON([]byte(line)); err != nil {
						d.Fatalf(t, "%v", err)
					}
					if err := p.Page(&page); err != nil {
						d.Fatalf(t, "%v", err)
					}
				}
				return out.String()
			}
			body := newBody(kind)
			if err := body.DecodeJSON([]byte(d.Input)); err != nil {
				d.Fatalf(t, "%v", err)
			}
			if err := p.Body(body); err != nil {
				d.Fatalf(t, "%v", err)
			}
			return out.String()
		})
	})
}

func TestPing(t *testing.T) {
	for _, c := range []struct {
		ahead time.Duration
		want  string
	}{
		{0, "n1 answered in 1.5ms\n"},
		{5 * time.Second, "n1 answered in 1.5ms, its clock is 5s ahead of ours\n"},
		{-2 * time.Minute, "n1 answered in 1.5ms, its clock is 2m00s behind ours\n"},
	} {
		var out bytes.Buffer
		p := &Printer{Out: &out, Now: func() time.Time { return testNow }}
		ping := &Ping{Pong: subjects.Pong{Node: "n1", Now: testNow.Add(c.ahead).UnixMilli()}, RTT: 1500 * time.Microsecond}
		if err := p.Body(ping); err != nil || out.String() != c.want {
			t.Errorf("%v ahead: %q, %v, want %q", c.ahead, out.String(), err, c.want)
		}
		var got map[string]any
		if err := json.Unmarshal(ping.AppendJSON(nil), &got); err != nil || got["rtt"] != "1.5ms" || got["node"] != "n1" {
			t.Errorf("JSON: %v, %v", got, err)
		}
	}
}

func TestTextShowsEveryDifference(t *testing.T) {
	for s, want := range map[string]string{
		"": "-", "-": `"-"`, "orders/4711": "orders/4711", "with space": "with space", " end": `" end"`,
		"größe": "größe", "a\x1b[2J": `"a\x1b[2J"`, "\xff\xfe": `"\xff\xfe"`, `"`: `"\""`, `a\b`: `"a\\b"`,
		"a\u202eb": `"a\u202eb"`, "\ufffd": "\"\ufffd\"", "a\nb": `"a\nb"`, "a\x00": `"a\x00"`,
	} {
		if got := Text(s); got != want {
			t.Errorf("Text(%q) = %s, want %s", s, got, want)
		}
	}
}

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 0: "0s", 900 * time.Microsecond: "900µs", 12 * time.Millisecond: "12ms", time.Second: "1s",
		12340 * time.Millisecond: "12.3s", 59999 * time.Millisecond: "59.9s", time.Minute: "1m00s", 245 * time.Second: "4m05s",
		time.Hour: "1h00m", 47 * time.Hour: "47h00m", 50 * time.Hour: "2d2h",
	} {
		if got := Span(d); got != want {
			t.Errorf("Span(%v) = %s, want %s", d, got, want)
		}
	}
}

func TestErrorsOfTheWriterAreTold(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip(err)
	}
	defer full.Close()
	p := &Printer{Out: full, Now: time.Now}
	if err := p.Body(&subjects.Released{Token: 1}); err == nil || errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v", err)
	}
}
