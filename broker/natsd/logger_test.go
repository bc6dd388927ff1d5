package natsd

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestWhatNatsServerLogs(t *testing.T) {
	var out bytes.Buffer
	b := newBridge(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelInfo})))
	b.Tracef("a %d", 1)
	b.Debugf("a %d", 2)
	b.Noticef("a %d", 3)
	if out.Len() != 0 {
		t.Errorf("logged %s", &out)
	}
	b.Warnf("w %d", 4)
	b.Errorf("e %d", 5)
	if err := b.fatal(); err != nil {
		t.Errorf("fatal: %v", err)
	}
	for _, n := range []int{6, 7} {
		b.Fatalf("f %d", n)
	}
	if err := b.fatal(); err == nil || err.Error() != "f 6" {
		t.Errorf("fatal: %v", err)
	}
	for _, want := range []string{`level=WARN msg="w 4"`, `level=WARN msg="e 5"`, `level=ERROR msg="f 6"`} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in\n%s", want, &out)
		}
	}
}
