package run

import (
	"os"
	"syscall"
	"time"
)

const (
	pollEvery = 5 * time.Millisecond // how often an ending group is looked at
	killWait  = 5 * time.Second      // how long after SIGKILL a group may still be there before Run gives up on it
)

// Job is one command under one lock.
type Job struct {
	Path  string   // of the executable, as [Find] gives it
	Args  []string // with the command's name first
	Env   []string // the whole environment, as [Environ] makes it
	Files []*os.File
	// TTY is the controlling terminal, nil if there is none or the command shall not have it. Foreground says that the
	// command gets it from the start; otherwise it gets it when it first wants it.
	TTY        *os.File
	Foreground bool

	// Signals are passed on to the command's group, each as it comes.
	Signals <-chan os.Signal

	// Lost is closed when the lock is held no longer, or can no longer be trusted to be.
	Lost <-chan struct{}
	// Trusted says whether the lock is still to be trusted at this moment. It is asked before a command that was
	// suspended together with this process is let go on, when Lost may not have had its turn yet.
	Trusted func() bool
	// KillIn says how long the command may still live. It is asked from the loss on, every few milliseconds: what it
	// answers may shrink by more than the time that passed for this process, because a suspended machine loses time.
	KillIn func() time.Duration

	// Tick gives a channel that delivers once after about d; nil is time.After.
	Tick func(d time.Duration) <-chan time.Time
}

// Result is how a command ended.
type Result struct {
	Status syscall.WaitStatus // of the command itself, meaningless if Alive
	Lost   bool               // the lock was lost before the command had ended
	Killed bool               // SIGKILL was needed
	Left   bool               // processes of the command's group live on
	Alive  bool               // the command itself lives on in spite of SIGKILL
}

// Run starts the job's command and returns when it has ended; after a loss, when its whole group has. An error means
// that nothing was started, see [StartCode].
func Run(job *Job) (Result, error) {
	if job.Tick == nil {
		job.Tick = time.After
	}
	select {
	case <-job.Lost:
		return Result{Lost: true}, ErrLostBefore
	default:
	}
	child, err := start(job)
	if err != nil {
		return Result{}, err
	}
	tty := newTerminal(job.TTY, child.group)
	defer tty.takeBack()

	for {
		select {
		case sig := <-job.Signals:
			child.group.forward(sig)
		case sig := <-child.stopped:
			tty.onStop(sig, job.Trusted)
		case <-job.Lost:
			res := end(job, child)
			tty.restoreModes()
			return res, nil
		case status := <-child.exited:
			res := Result{Status: status, Left: child.group.alive()}
			select {
			case <-job.Lost:
				if res.Left {
					child.status, child.reaped = status, true
					res = end(job, child)
				}
				res.Lost = true
			default:
			}
			return res, nil
		}
	}
}

// end brings the whole group to its end after the lock is lost: SIGTERM now, SIGKILL when KillIn is used up.
func end(job *Job, child *child) Result {
	adoptOrphans(true) // so that what the command leaves behind can be waited for, whatever init does
	defer adoptOrphans(false)
	res := Result{Lost: true}

	child.group.signal(syscall.SIGTERM)
	child.group.signal(syscall.SIGCONT) // a stopped process does not see a SIGTERM
	var sinceKill time.Duration
	for !child.over() {
		switch {
		case !res.Killed && job.KillIn() <= 0:
			res.Killed = true
			child.group.signal(syscall.SIGKILL)
		case sinceKill >= killWait:
			res.Left, res.Alive = true, !child.reaped
			res.Status = child.status
			return res
		}
		select {
		case sig := <-job.Signals:
			child.group.forward(sig)
		case child.status = <-child.exited:
			child.reaped = true
		case <-job.Tick(pollEvery):
			if res.Killed {
				sinceKill += pollEvery
			}
		}
	}
	res.Status = child.status
	return res
}
