package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"go.uber.org/goleak"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/internal/cli/output"
	"github.com/opencluster/oclocks/subjects"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// report gives what Report says and its exit code.
func report(t *testing.T, inJSON bool, err error) (said string, code int) {
	t.Helper()
	r, w, pipeErr := os.Pipe()
	if pipeErr != nil {
		t.Fatal(pipeErr)
	}
	defer r.Close()
	a := &App{Stderr: w, JSON: inJSON, Timeout: 5 * time.Second}
	code = a.Report(err)
	w.Close()
	text, readErr := io.ReadAll(r)
	if readErr != nil {
		t.Fatal(readErr)
	}
	return string(text), code
}

func refusal(code int, reason, why, message string) error {
	return fmt.Errorf("doing something: %w", &subjects.Refusal{Code: code, Reason: reason, Why: why, Message: message, Field: "slots"})
}

func TestEveryErrorHasACodeAndSaysWhatToDo(t *testing.T) {
	about := func(op subjects.Op, err error) error { return &opError{op: op, name: "a b", err: err} }
	held := &subjects.Record{Held: true, Waiting: 4, More: 1, Holders: []subjects.Holder{{User: "UABC", Since: time.Now().Add(-time.Hour).UnixMilli()}}}
	for _, c := range []struct {
		err  error
		code int
		says []string
	}{
		{nil, 0, nil},
		{&ExitError{42}, 42, nil},
		{errors.Join(&ExitError{42}, errors.New("more")), 42, nil},
		{fmt.Errorf("waiting: %w", &interrupted{syscall.SIGTERM}), 143, nil},
		{usagef("--slots is odd"), CodeUsage, []string{"oclocks-cli: --slots is odd", "see: oclocks-cli --help"}},
		{&notAcquired{name: "a b", code: 75, record: held}, 75, []string{"a b is held by UABC and 1 more for 1h00m, 4 waiting", "-w 10s"}},
		{&notAcquired{name: "a b", code: 9, wait: "10s", record: held}, 9, []string{"not acquired within 10s: a b is held by UABC", "query 'a b'"}},
		{&notAcquired{name: "a", code: 75, record: &subjects.Record{}}, 75, []string{"a was not free, and is now"}},
		{&notAcquired{name: "\xff", code: 75}, 75, []string{`"\xff" is not free`}},
		{&lockLost{name: "a", err: client.ErrLost, reason: &subjects.Refusal{Code: 410, Why: "forced"}, ended: "the command was killed"}, 76,
			[]string{"a was lost (an admin took it away); the command was killed", "query a"}},
		{&lockLost{name: "a", err: client.ErrLost}, 76, []string{"a was lost\n"}},
		{refusal(400, "bad_request", "", "a number is expected"), CodeUsage, []string{"a number is expected", "the field is slots"}},
		{about(subjects.OpForce, refusal(403, "denied", "", "not for you")), CodeDenied, []string{"a b: not for you", "role admin"}},
		{about(subjects.OpAcquire, refusal(403, "denied", "", "not for you")), CodeDenied, []string{"role user"}},
		{about(subjects.OpQuery, refusal(403, "denied", "", "not for you")), CodeDenied, []string{"role viewer"}},
		{about(subjects.OpRelease, refusal(403, "denied", "", "wrong key")), CodeDenied, []string{"the key may be", "query 'a b'"}},
		{about(subjects.OpRelease, refusal(404, "not_held", "", "")), CodeRefused, []string{"404 not_held", "query 'a b'"}},
		{refusal(408, "timeout", "", "over"), 75, []string{"query NAME"}},
		{refusal(410, "lost", "expired", "gone"), 76, []string{"gone", "query NAME"}},
		{refusal(410, "session", "expired", "gone"), 76, []string{"session open"}},
		{refusal(413, "too_large", "", "a long name"), CodeRefused, []string{"a long name"}},
		{refusal(429, "quota", "", "too many"), CodeRefused, []string{"quota"}},
		{refusal(503, "unavailable", "stopping", "bye"), CodeUnavailable, []string{"try again"}},
		{refusal(503, "unavailable", "min_quorum", "few"), CodeUnavailable, []string{"too few nodes"}},
		{refusal(503, "unavailable", "overloaded", "busy"), CodeUnavailable, []string{"try again"}},
		{refusal(503, "unavailable", "recovery", "wait"), CodeUnavailable, []string{"goes on renewing keeps what it has"}},
		{&opError{op: subjects.OpRenew, name: "a", err: refusal(503, "unavailable", "recovery", "wait")}, CodeUnavailable, []string{"--trusted"}},
		{fmt.Errorf("%w: late; %w", client.ErrLost, refusal(503, "unavailable", "recovery", "wait")), CodeLost, []string{"release it by its key"}},
		{refusal(503, "unavailable", "", "nobody"), CodeUnavailable, []string{"oclocks-daemon"}},
		{fmt.Errorf("connect: %w: %w", client.ErrUnavailable, nats.ErrNoServers), CodeUnavailable, []string{"start one with: oclocks-daemon", "--url"}},
		{fmt.Errorf("connect: %w: %w", client.ErrUnavailable, nats.ErrAuthorization), CodeDenied, []string{"--creds"}},
		{about(subjects.OpForce, fmt.Errorf("force: %w", client.ErrDenied)), CodeDenied, []string{"--role admin"}},
		{about(subjects.OpQuery, errNoAnswer), CodeUnavailable, []string{"no answer within 5s", "--timeout"}},
		{fmt.Errorf("read: %w", &os.PathError{Op: "open", Path: "/x", Err: os.ErrNotExist}), CodeUsage, []string{"/x"}},
		{fmt.Errorf("%w: %w", output.ErrWrite, &os.PathError{Op: "write", Path: "/x", Err: syscall.ENOSPC}), CodeFailed, []string{"cannot write"}},
		{errors.New("something else"), CodeRefused, []string{"something else"}},
	} {
		said, code := report(t, false, c.err)
		if code != c.code || (said == "") != (c.says == nil) {
			t.Errorf("%v: code %d, want %d: %s", c.err, code, c.code, said)
		}
		for _, want := range c.says {
			if !strings.Contains(said, want) {
				t.Errorf("%v: no %q in\n%s", c.err, want, said)
			}
		}
		said, jsonCode := report(t, true, c.err)
		var body struct{ Error struct{ Code int } }
		if c.says == nil && said == "" {
			continue
		}
		if err := json.Unmarshal([]byte(said), &body); err != nil || jsonCode != code || body.Error.Code < 400 && c.code != 76 {
			t.Errorf("%v in JSON: code %d, %v, %s", c.err, jsonCode, err, said)
		}
	}
}

func TestComplaintsInJSON(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	a := &App{Stderr: w, JSON: true}
	a.complain("a \"quoted\" thing", "never mind")
	w.Close()
	text, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(text, []byte(`{"warning":{"message":"a \"quoted\" thing"}}`+"\n")) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestSignalsEndAContext(t *testing.T) {
	a := &App{signals: make(chan os.Signal, 2)}
	ctx, stop := a.interruptible(t.Context())
	a.signals <- syscall.SIGUSR1 // is for commands
	a.signals <- syscall.SIGHUP
	<-ctx.Done()
	stop()
	if _, code := report(t, false, fmt.Errorf("waiting: %w", context.Cause(ctx))); code != 129 {
		t.Errorf("exit code %d", code)
	}
	_, stop = a.interruptible(t.Context())
	stop()
	a.signals <- syscall.SIGTERM
	if len(a.signals) != 1 {
		t.Error("somebody took a signal after stop")
	}
}
