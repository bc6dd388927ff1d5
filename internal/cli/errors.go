package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/opencluster/oclocks/subjects"
)

var (
	// ErrUsage is matched by errors about what was typed.
	ErrUsage = errors.New("wrong usage")

	errNoAnswer = errors.New("no answer in time")
	errWaitOver = errors.New("the wait is over")
)

// ExitError ends the process with a code; there is nothing to say, or it has been said.
type ExitError struct{ Code int }

// Error is for logs of tests; users do not see it.
func (e *ExitError) Error() string { return fmt.Sprintf("exit status %d", e.Code) }

// usagef makes an error about what was typed.
func usagef(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrUsage}, args...)...)
}

// interrupted is the cause of a context that a signal ended.
type interrupted struct{ signal os.Signal }

func (e *interrupted) Error() string { return "interrupted: " + e.signal.String() }

// opError says which operation on which lock went wrong, so that it can be explained.
type opError struct {
	op   subjects.Op
	name string // "" if it is about none
	err  error
}

func (e *opError) Error() string { return e.err.Error() }

func (e *opError) Unwrap() error { return e.err }

// noBroker says that a NATS server answers, and nobody behind it listens for requests about locks.
type noBroker struct {
	err    error
	reason *subjects.Refusal
}

func (e *noBroker) Error() string { return e.err.Error() }

func (e *noBroker) Unwrap() error { return e.err }

// notAcquired says that a lock is still not ours after as much patience as was asked for.
type notAcquired struct {
	name   string
	record *subjects.Record // as it is now; nil if that is unknown
	wait   string           // how long we waited; "" for not at all
	code   int              // exit code
}

func (e *notAcquired) Error() string { return fmt.Sprintf("lock %q: not acquired", e.name) }

// lockLost says that a lock was lost while it was needed.
type lockLost struct {
	name   string
	err    error
	ended  string // what became of the command, "" if there was none
	reason *subjects.Refusal
}

func (e *lockLost) Error() string { return fmt.Sprintf("lock %q was lost", e.name) }

func (e *lockLost) Unwrap() error { return e.err }
