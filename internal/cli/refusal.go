package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/opencluster/oclocks/internal/cli/output"
	"github.com/opencluster/oclocks/subjects"
)

// explainRefusal finds the words for what a broker refused.
func explainRefusal(err error, r *subjects.Refusal) problem {
	p := problem{code: CodeRefused, reason: r, text: r.Message}
	if r.Message == "" {
		p.text = r.Error()
	}
	var op *opError
	name, arg := "", "NAME"
	if errors.As(err, &op) && op.name != "" {
		name, arg = output.Text(op.name)+": ", shell(op.name)
	}
	p.text = name + p.text
	switch r.Code {
	case 400:
		p.code = CodeUsage
		if !strings.Contains(r.Message, r.Field) {
			p.hint = "the field is " + output.Text(r.Field)
		}
	case 403:
		p.code = CodeDenied
		p.hint = deniedHint(op, arg, err)
	case 404:
		p.hint = "see who holds it with: oclocks-cli query " + arg
	case 408, 409:
		p.code = CodeNotAcquired
		p.hint = "see who is before you with: oclocks-cli query " + arg
	case 410:
		p.code = CodeLost
		p.hint = "see who has it now with: oclocks-cli query " + arg
		if r.Reason == subjects.ReasonSession {
			p.hint = "open a new session with: oclocks-cli session open"
		}
	case 429:
		p.hint = "release what is not needed, or have the operator raise the zone's quota; see what there is with: oclocks-cli list"
	case 503:
		p.code = CodeUnavailable
		p.hint = unavailableHint(r)
		if op != nil && op.op == subjects.OpRenew && r.Why == subjects.WhyRecovery {
			p.hint = "after a loss only locks are renewed that were trusted without a break: if you have counted that, say so with --trusted; else go on asking, which keeps the lock"
		}
	}
	return p
}

// deniedHint tells the role from the key: a release and a renew can be refused for either.
func deniedHint(op *opError, arg string, err error) string {
	if op != nil && (op.op == subjects.OpRelease || op.op == subjects.OpRenew) {
		return "the key may be of an earlier hold, or your role may not allow it; see who holds it with: oclocks-cli query " + arg
	}
	return roleHint(err)
}

func unavailableHint(r *subjects.Refusal) string {
	hint := "see how the broker is with: oclocks-cli info"
	switch r.Why {
	case subjects.WhyStopping:
		hint = "the node is being stopped; try again"
	case subjects.WhyOverloaded:
		hint = "the broker has more to do than it can; try again"
	case subjects.WhyRecovery:
		hint = "after a loss nothing is granted until earlier leases are over; who goes on renewing keeps what it has; try again"
	case subjects.WhyNoQuorum, subjects.WhyMinQuorum:
		hint = "too few nodes are there; holders may still renew and release"
	case "":
		hint = "nobody serves this lock now: see with oclocks-cli cluster whether enough nodes are up; or start a broker with: oclocks-daemon"
	}
	if r.RetryAfter > 0 && strings.HasSuffix(hint, "try again") {
		hint += fmt.Sprintf(" in %s", output.Span(r.RetryAfter))
	}
	return hint
}
