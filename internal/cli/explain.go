package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/internal/cli/output"
	"github.com/opencluster/oclocks/subjects"
)

// problem is an error as the user hears of it.
type problem struct {
	code   int
	text   string // what is wrong, one line
	hint   string // what to do next, one line; "" if there is nothing to do
	reason *subjects.Refusal
}

// Report says what went wrong and what to do next, on Stderr, and gives the exit code. In JSON it is a refusal as on the
// wire.
func (a *App) Report(err error) int {
	var exit *ExitError
	if err == nil {
		return CodeOK
	}
	if errors.As(err, &exit) {
		return exit.Code
	}
	p := a.explain(err)
	silent := a.Quiet && !a.JSON && errors.As(err, new(*notAcquired)) // as flock is
	if p.text != "" && !silent {
		a.say(p)
	}
	return p.code
}

// complain says something that does not change the exit code.
func (a *App) complain(text, hint string) {
	if !a.JSON {
		a.say(problem{text: text, hint: hint})
		return
	}
	line, err := json.Marshal(map[string]any{"warning": map[string]string{"message": text}})
	if err != nil {
		return // cannot be: strings are always encoded
	}
	fmt.Fprintf(a.Stderr, "%s\n", line)
}

func (a *App) say(p problem) {
	var out io.Writer = a.Stderr
	if a.JSON {
		if p.reason == nil {
			p.reason = &subjects.Refusal{Code: wireCode(p.code), Reason: wireReason(p.code), Message: p.text}
		}
		fmt.Fprintf(out, "%s\n", p.reason.AppendJSON(nil))
		return
	}
	text := "oclocks-cli: " + p.text + "\n"
	if p.hint != "" {
		text += "  " + p.hint + "\n"
	}
	fmt.Fprint(out, text)
}

// wireCode and wireReason are what the wire would say, for an error that no broker told.
func wireCode(code int) int {
	switch code {
	case CodeUsage:
		return 400
	case CodeNotAcquired:
		return 408
	case CodeLost:
		return 410
	case CodeDenied:
		return 403
	}
	return 503
}

func wireReason(code int) string {
	switch code {
	case CodeUsage:
		return subjects.ReasonBadRequest
	case CodeNotAcquired:
		return subjects.ReasonTimeout
	case CodeLost:
		return subjects.ReasonLost
	case CodeDenied:
		return subjects.ReasonDenied
	}
	return subjects.ReasonUnavailable
}

// explain finds the words for an error.
func (a *App) explain(err error) problem {
	var (
		stopped *interrupted
		not     *notAcquired
		lost    *lockLost
		nobody  *noBroker
		refusal *subjects.Refusal
		path    *fs.PathError
	)
	switch {
	case errors.As(err, &stopped):
		return problem{code: signalCode(stopped.signal)}
	case errors.As(err, &not):
		return explainNotAcquired(not)
	case errors.As(err, &lost):
		return explainLost(lost)
	case errors.As(err, &nobody):
		return problem{code: CodeUnavailable, text: "a NATS server answers, but no lock broker: " + err.Error(), reason: nobody.reason,
			hint: "start one, with a NATS server of its own: oclocks-daemon --listen HOST:PORT; or say where it is with --url nats://HOST:PORT or NATS_URL"}
	case errors.As(err, &refusal) && (refusal.Code == 410 || !errors.Is(err, client.ErrLost)):
		return explainRefusal(err, refusal)
	case errors.Is(err, client.ErrLost): // by time, in a renew
		return problem{code: CodeLost, text: err.Error(), hint: "do not trust it any more; it may be held for you nonetheless: renew it without --trusted, or release it by its key"}
	case errors.Is(err, ErrUsage):
		text := strings.ReplaceAll(err.Error(), ErrUsage.Error()+": ", "")
		return problem{code: CodeUsage, text: text, hint: "see: " + cmp.Or(a.Command, "oclocks-cli") + " --help"}
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrAuthExpired), errors.Is(err, nats.ErrAuthRevoked):
		return problem{code: CodeDenied, text: err.Error(),
			hint: "the broker is there but does not accept who you are: --creds FILE or --context NAME must name credentials of this broker, not expired or revoked; an operator makes them with: oclocks-config user add"}
	case errors.Is(err, client.ErrDenied), errors.Is(err, nats.ErrPermissionViolation):
		return problem{code: CodeDenied, text: err.Error(), hint: roleHint(err)}
	case errors.Is(err, client.ErrUnavailable):
		return problem{code: CodeUnavailable, text: err.Error(),
			hint: "start one with: oclocks-daemon; or say where it is with --url nats://HOST:4222 or NATS_URL"}
	case errors.Is(err, errNoAnswer), errors.Is(err, context.DeadlineExceeded), errors.Is(err, client.ErrUnknown):
		return problem{code: CodeUnavailable, text: fmt.Sprintf("no answer within %s: %v", a.Timeout, err),
			hint: "see whether a broker is there with: oclocks-cli ping; wait longer with --timeout"}
	case errors.Is(err, client.ErrBadRequest):
		return problem{code: CodeUsage, text: err.Error()}
	case errors.Is(err, output.ErrWrite):
		return problem{code: CodeFailed, text: err.Error()}
	case errors.As(err, &path):
		return problem{code: CodeUsage, text: err.Error()}
	}
	return problem{code: CodeRefused, text: err.Error()}
}

// explainNotAcquired says who holds the lock.
func explainNotAcquired(e *notAcquired) problem {
	refusal := &subjects.Refusal{Code: 409, Reason: subjects.ReasonHeld}
	if e.wait != "" {
		refusal.Code, refusal.Reason = 408, subjects.ReasonTimeout
	}
	text := output.Text(e.name) + " is not free"
	if e.wait != "" {
		text = "not acquired within " + e.wait + ": " + text
	}
	hint := "to wait for it, use: -w 10s"
	if e.wait != "" {
		hint = "see who is before you with: oclocks-cli query " + shell(e.name)
	}
	if r := e.record; r != nil {
		refusal.HasQueue, refusal.Queue = true, r.Waiting
		if len(r.Holders) > 0 {
			h := &r.Holders[0]
			refusal.Holder, refusal.Since = h.Holder, h.Since
			if h.Holder == "" {
				refusal.Holder = h.User
			}
		}
		text = strings.TrimSuffix(text, "is not free") + standing(r)
	}
	refusal.Message = text
	return problem{code: e.code, text: text, hint: hint, reason: refusal}
}

// standing is how it stands with a lock: "is held by web-1 for 12s, 3 waiting".
func standing(r *subjects.Record) string {
	if len(r.Holders) == 0 {
		return "was not free, and is now"
	}
	h := &r.Holders[0]
	name := h.Holder
	if name == "" {
		name = h.User
	}
	s := "is held by " + output.Text(name)
	if more := len(r.Holders) + r.More - 1; more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return fmt.Sprintf("%s for %s, %d waiting", s, output.Span(time.Since(time.UnixMilli(h.Since))), r.Waiting)
}

// explainLost says why a lock was lost and what became of the command.
func explainLost(e *lockLost) problem {
	text := output.Text(e.name) + " was lost"
	if e.reason != nil && e.reason.Why != "" {
		text += " (" + whyWords(e.reason.Why) + ")"
	}
	if e.ended != "" {
		text += "; " + e.ended
	}
	reason := e.reason
	if reason == nil {
		reason = &subjects.Refusal{Code: 410, Reason: subjects.ReasonLost, Message: text}
	}
	return problem{code: CodeLost, text: text, reason: reason,
		hint: "see who has it now with: oclocks-cli query " + shell(e.name)}
}

// whyWords are for people.
func whyWords(why string) string {
	switch why {
	case subjects.WhyExpired:
		return "the broker was not heard of in time"
	case subjects.WhyDisconnected:
		return "the connection was closed"
	case subjects.WhyForced:
		return "an admin took it away"
	case subjects.WhySuperseded:
		return "its session is used elsewhere"
	case subjects.WhyClosed:
		return "its session was closed"
	}
	return output.Text(why)
}

// roleHint says which role an operation needs.
func roleHint(err error) string {
	var op *opError
	role := "user"
	if errors.As(err, &op) {
		switch op.op {
		case subjects.OpForce:
			role = "admin"
		case subjects.OpQuery, subjects.OpList, subjects.OpCheck, subjects.OpInfo, subjects.OpServers, subjects.OpPing,
			subjects.OpCluster:
			role = "viewer"
		}
	}
	return "it needs credentials of the role " + role + ": --creds FILE; an operator makes them with: oclocks-config user add --role " + role + " NAME"
}
