package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/internal/cli/output"
	"github.com/opencluster/oclocks/internal/cli/run"
	"github.com/opencluster/oclocks/subjects"
)

// Lock holds a lock: while the command runs, or without one until a signal. conflictCode is the exit code for a lock that
// could not be had.
func (a *App) Lock(ctx context.Context, spec *LockSpec, command []string, conflictCode int) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	path := ""
	if len(command) > 0 {
		var err error
		if path, err = run.Find(command[0]); err != nil {
			return a.cannotRun(command[0], err)
		}
	}
	c, held, err := a.take(ctx, spec, conflictCode)
	if err != nil {
		return err
	}
	if path == "" {
		err = a.hold(spec, held)
	} else {
		err = a.runUnder(spec, held, path, command)
	}
	return a.giveBack(ctx, c, held, err)
}

// cannotRun says why a command cannot be run.
func (a *App) cannotRun(command string, err error) error {
	code := run.StartCode(err)
	what := "cannot be run"
	if code == run.CodeNotFound {
		what = "not found"
	}
	a.complain(fmt.Sprintf("%s: %s (%v)", command, what, err), "")
	return &ExitError{code}
}

// take connects and takes the lock. Signals end it; afterwards they are left for others.
func (a *App) take(ctx context.Context, spec *LockSpec, conflictCode int) (*client.Client, *client.Claim, error) {
	ctx, stop := a.interruptible(ctx)
	c, err := a.connect(ctx, spec.clientOptions()...)
	if err != nil {
		stop()
		return nil, nil, err
	}
	held, err := a.await(ctx, spec, c, conflictCode)
	stop()
	if err == nil && ctx.Err() != nil { // the signal came together with the grant
		return nil, nil, a.giveBack(ctx, c, held, context.Cause(ctx))
	}
	if err != nil {
		return nil, nil, errors.Join(err, a.close(ctx, c))
	}
	return c, held, nil
}

// await waits for the lock as long as it shall.
func (a *App) await(ctx context.Context, spec *LockSpec, c *client.Client, conflictCode int) (*client.Claim, error) {
	wait, cancel := ctx, context.CancelFunc(func() {})
	switch {
	case spec.try():
		wait, cancel = a.limited(ctx)
	case spec.Wait != nil:
		wait, cancel = context.WithTimeoutCause(ctx, *spec.Wait, errWaitOver)
	}
	defer cancel()
	held, err := spec.take(wait, c)
	switch {
	case err == nil:
		return held, nil
	case errors.Is(err, client.ErrHeld), errors.Is(err, errWaitOver), errors.Is(err, client.ErrTimeout):
		e := &notAcquired{name: spec.Name, code: conflictCode, record: a.lookUp(ctx, c, spec.Name)}
		if !spec.try() {
			e.wait = output.Span(*spec.Wait)
		}
		return nil, e
	}
	return nil, &opError{op: subjects.OpAcquire, name: spec.Name, err: err}
}

// lookUp tells who holds a lock, nil if that cannot be learned soon.
func (a *App) lookUp(ctx context.Context, c *client.Client, name string) *subjects.Record {
	ctx, cancel := context.WithTimeout(ctx, min(a.Timeout, time.Second))
	defer cancel()
	record, err := c.Query(ctx, name)
	if err != nil {
		return nil
	}
	return record
}

// hold prints the grant and waits for a signal.
func (a *App) hold(spec *LockSpec, held *client.Claim) error {
	grant := held.Grant()
	if err := a.Printer().Body(&grant); err != nil {
		return err
	}
	for {
		select {
		case sig := <-a.signals:
			if ends(sig) {
				return nil
			}
		case <-held.Done():
			return a.lost(spec.Name, held, "")
		}
	}
}

// runUnder runs the command while the lock is held.
func (a *App) runUnder(spec *LockSpec, held *client.Claim, path string, command []string) error {
	key, err := strconv.ParseUint(held.Key(), 16, 64)
	if err != nil {
		return fmt.Errorf("the claim has a key that is none: %w", err)
	}
	t := newTrust(held, boottime.Now)
	stop, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		t.keepLooking(stop)
	}()
	defer func() {
		close(stop)
		<-over
	}()
	tty, foreground := run.OpenTerminal(a.Stdin)
	if tty != nil {
		defer tty.Close()
	}
	res, err := run.Run(&run.Job{
		Path: path, Args: command, Env: run.Environ(os.Environ(), spec.Name, held.Token(), key),
		Files: []*os.File{a.Stdin, a.Stdout, a.Stderr}, TTY: tty, Foreground: foreground,
		Signals: a.signals, Lost: held.Done(), Trusted: func() bool { return held.Err() == nil }, KillIn: t.killIn,
	})
	switch {
	case errors.Is(err, run.ErrLostBefore):
		return a.lost(spec.Name, held, "the command was not started")
	case err != nil:
		return a.cannotRun(command[0], err)
	case res.Lost:
		return a.lost(spec.Name, held, fate(res))
	case res.Left:
		a.complain("processes that the command left behind go on without the lock", "")
	}
	if code := run.Code(res.Status); code != 0 {
		return &ExitError{code}
	}
	return nil
}

// fate says what became of a command whose lock was lost.
func fate(res run.Result) string {
	switch {
	case res.Alive:
		return "the command could not be killed"
	case res.Left:
		return "processes of the command could not be killed"
	case res.Killed:
		return "the command was killed"
	default:
		return "the command was ended"
	}
}

// lost makes the error of a claim that is lost.
func (a *App) lost(name string, held *client.Claim, ended string) error {
	e := &lockLost{name: name, err: held.Err(), ended: ended}
	errors.As(e.err, &e.reason)
	return e
}

// goodbye is how long a process whose lock is lost tries to tell the broker that it has stopped. The broker is likely not
// to be reached; if it is, a hold that was forced ends sooner.
const goodbye = time.Second

// giveBack releases the lock, now that nobody works under it any longer, and closes the client. result is what is to be
// told unless that goes wrong.
func (a *App) giveBack(ctx context.Context, c *client.Client, held *client.Claim, result error) error {
	limit := a.Timeout
	already := errors.As(result, new(*lockLost))
	if already {
		result = &ExitError{a.Report(result)} // at once: what follows may take its time
		limit = min(limit, goodbye)
	}
	ctx, cancel := context.WithTimeoutCause(context.WithoutCancel(ctx), limit, errNoAnswer)
	defer cancel()
	err := held.Release(ctx)
	closed := c.Close(ctx)
	switch {
	case already:
	case errors.Is(err, client.ErrLost):
		return a.lost(held.Name(), held, "it was lost before it could be released")
	case err != nil:
		a.complain(fmt.Sprintf("%s could not be released: %v", output.Text(held.Name()), err),
			"it is free again when its lease is over; until then see: oclocks-cli query "+shell(held.Name()))
	case closed != nil:
		a.complain(closed.Error(), "")
	}
	return result
}
