package chaos

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/internal/check"
	"github.com/opencluster/oclocks/subjects"
)

// hold has one client be granted a lock, and believe in it.
func hold(r *recorder, client string, token uint64) {
	r.add(check.Event{Kind: check.Ask, Op: subjects.OpAcquire, Zone: "z", Client: client, Request: "1", Name: "x", Hold: subjects.Static, TTL: time.Hour, Grace: -1})
	r.add(check.Event{Kind: check.Answer, Zone: "z", Client: client, Request: "1", Code: 200, Token: token, Ticket: token, Key: token, TTL: time.Hour, Lease: time.Hour})
	r.add(check.Event{Kind: check.Believe, Zone: "z", Client: client, Name: "x", Token: token, Until: boottime.Now() + int64(time.Hour)})
}

// What two processes record is merged while they go on, and only as far as both are: here two believe in one lock.
func TestHistoryIsCheckedWhileItIsWritten(t *testing.T) {
	dir := t.TempDir()
	h := newHistory(check.Options{})
	var tapes []*tape
	var recorders []*recorder
	for _, name := range []string{"a", "b"} {
		path := filepath.Join(dir, name)
		tapes = append(tapes, h.begin(path))
		if len(recorders) == 0 {
			if wrong, err := h.advance(); err != nil || len(wrong) > 0 {
				t.Fatalf("a recording that is not there yet: %v %v", wrong, err)
			}
		}
		r, err := newRecorder(path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.file.Close()
		defer r.marks.Close()
		recorders = append(recorders, r)
	}
	hold(recorders[0], "a", 1)
	hold(recorders[1], "b", 2)
	recorders[0].mark()
	if wrong, err := h.advance(); err != nil || len(wrong) > 0 || h.operations != 0 {
		t.Fatalf("checked before the other could not tell anything earlier: %d, %v %v", h.operations, wrong, err)
	}
	tapes[1].ended = true
	wrong, err := h.advance()
	if err != nil || len(wrong) == 0 || wrong[0].Promise != check.Exclusion {
		t.Fatalf("two holders are not noticed: %v %v", wrong, err)
	}
	if again, err := h.advance(); err != nil || len(again) > 0 || h.operations != 2 {
		t.Errorf("told again: %v %v, %d operations", again, err, h.operations)
	}
	hold(recorders[0], "c", 3)
	h.forget(boottime.Now())
	if len(h.tapes) != 1 || h.tapes[0] != tapes[0] {
		t.Errorf("%d recordings are left", len(h.tapes))
	}
}

func TestLineTime(t *testing.T) {
	if at, err := lineTime([]byte(`{"at":12,"kind":"ask"}`)); at != 12 || err != nil {
		t.Errorf("%d, %v", at, err)
	}
	for _, line := range []string{"", "{}", `{"at":x,`, `{"at":12`, `{"kind":"ask","at":12,`} {
		if _, err := lineTime([]byte(line)); err == nil {
			t.Errorf("%q has a time", line)
		}
	}
}

func TestStory(t *testing.T) {
	line := `{"at":1,"kind":"ask","client":"p1.1.a","name":"mutex-1"}`
	if field(line, "name") != "mutex-1" || field(line, "zone") != "" || !strings.HasPrefix(field(line, "client"), "p1") {
		t.Errorf("%q", field(line, "name"))
	}
}
