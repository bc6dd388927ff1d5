package natsd

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
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

func TestWhatNatsServerRepeatsIsLeftOut(t *testing.T) {
	var out bytes.Buffer
	b := newBridge(slog.New(slog.NewTextHandler(&out, nil)))
	for i := range 3 * saidMost {
		b.Errorf(fmt.Sprintf("127.0.0.1:%d - rid:%d - TLS route handshake error: %%v", 4000+i, i), "x")
	}
	b.Warnf("something else")
	if n := strings.Count(out.String(), "TLS route"); n != saidMost {
		t.Errorf("said %d times", n)
	}
	if !strings.Contains(out.String(), "left out") || !strings.Contains(out.String(), "something else") {
		t.Errorf("got %s", &out)
	}

	var s said
	now := time.Now()
	for range saidMost + 1 {
		s.again("x", now)
	}
	if say, _ := s.again("x", now.Add(saidEvery-1)); say {
		t.Error("said again too early")
	}
	if say, _ := s.again("x", now.Add(saidEvery)); !say {
		t.Error("never said again")
	}
	for i := range 2 * saidKinds {
		s.again(fmt.Sprint("kind ", i), now.Add(saidEvery))
	}
	if len(s.count) != saidKinds {
		t.Errorf("%d kinds are remembered", len(s.count))
	}
}
