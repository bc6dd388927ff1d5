package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/opencluster/oclocks/internal/cli"
	"github.com/opencluster/oclocks/subjects"
)

const lockHelp = `Take a lock, and hold it while a command runs; or, without a command, until a signal.

The command runs in a process group of its own, with our standard input, output and error; on a terminal it is in the
foreground, so reading, Ctrl-C and Ctrl-Z work as without a lock. SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 that
come to oclocks-cli are passed on to the whole group. In its environment the command finds

  OCLOCKS_NAME     the lock's name (OCLOCKS_NAME64, in base64, if that is no text)
  OCLOCKS_TOKEN    the fencing token: give it to whatever you write to, which refuses tokens lower than one it has seen
  OCLOCKS_KEY      the unlock key, for renew and release

The lock is released when the command has ended. What it leaves running in the background goes on without the lock, and
that is told.

If the lock is lost (the broker cannot be reached, an admin forces it), the command is ended before anybody else can have
the lock: SIGTERM goes to the group when the lock is no longer trusted, which is 3/4 of the lease after the broker was
last heard of, and SIGKILL an eighth of the lease later (10s at the most). So with the usual lease of 10s the command has
1.25s to tidy up. Processes that leave the group (setsid) are not reached by either.

If oclocks-cli itself is killed with SIGKILL, Linux kills the command too. What the command has started is not killed
then: it goes on without the lock, which is free again after --grace. Use the token where that matters, or start the
command as "sh -c 'exec CMD'", so that there is no shell in between. A set-user-ID command is not killed either.

Suspended with Ctrl-Z for longer than its lease, the lock is lost; the command is killed before it goes on. If oclocks-cli
alone is stopped (kill -STOP), nobody watches over the command, and it goes on when the lock is lost.

Exit codes, if there is a command: that of the command; 128+n if signal n ended it; 126 if it cannot be run, 127 if there is
no such command (no lock is taken then); 75 if the lock was not acquired (or -E); 76 if it was lost, whatever the command
made of it. Without a command: 0 after SIGINT, SIGTERM, SIGHUP or SIGQUIT. While waiting for the lock a signal n ends with
128+n.`

func lockCommand(app *cli.App) *cobra.Command {
	var lease cli.Duration
	conflict := cli.CodeNotAcquired
	cmd := &cobra.Command{
		Use:   "lock [flags] NAME [-- CMD ARGS…]",
		Short: "Hold a lock while a command runs, or until a signal", GroupID: groupLocks,
		Long: lockHelp,
		Example: `  oclocks-cli lock orders/4711 -- ./job.sh            # wait for it as long as it takes
  oclocks-cli lock -n orders/4711 -- ./job.sh         # give up at once if it is held (exit code 75)
  oclocks-cli lock -w 10s orders/4711 -- ./job.sh     # or after 10 seconds
  oclocks-cli lock -s config -- ./reader.sh           # together with other readers
  oclocks-cli lock --slots 3 licences -- ./job.sh     # at most 3 at a time
  oclocks-cli lock orders/4711                        # hold it until Ctrl-C`,
	}
	spec := lockFlags(cmd, app)
	cmd.Flags().VarP(&lease, "lease", "", "lease of the session: how long the lock survives our silence (default: the broker's, 10s)")
	cmd.Flags().IntVarP(&conflict, "conflict-exit-code", "E", conflict, "exit `CODE` if the lock is not acquired, 0 to 255")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if conflict < 0 || conflict > 255 {
			return fmt.Errorf("%w: --conflict-exit-code is 0 to 255", cli.ErrUsage)
		}
		dash := cmd.ArgsLenAtDash()
		command := []string(nil)
		if dash >= 0 {
			if args, command = args[:dash], args[dash:]; len(command) == 0 {
				return fmt.Errorf("%w: which command? There is none after --", cli.ErrUsage)
			}
		}
		name, rest, err := nameOf(cmd, args)
		if err != nil {
			return err
		}
		if len(rest) > 0 {
			return fmt.Errorf("%w: put -- before the command: %s", cli.ErrUsage, cmd.UseLine())
		}
		s, err := spec(name)
		if err != nil {
			return err
		}
		s.Lease = lease.Value
		return app.Lock(cmd.Context(), s, command, conflict)
	}
	return cmd
}

// lockFlags adds what lock and acquire have in common. The function that it returns reads the flags, when they are parsed.
func lockFlags(cmd *cobra.Command, app *cli.App) func(name string) (*cli.LockSpec, error) {
	nameFlag(cmd, app)
	s := &cli.LockSpec{Take: 1}
	var wait, ttl, grace, settle cli.Duration
	var drain, acks, data string
	f := cmd.Flags()
	f.SortFlags = false
	f.BoolVarP(&s.Shared, "shared", "s", false, "share the lock with other readers")
	f.BoolVarP(&s.Try, "nonblock", "n", false, "try once and do not wait")
	f.VarP(&wait, "wait", "w", "wait so long at the most; 0 is --nonblock")
	f.IntVar(&s.Slots, "slots", 0, "take a semaphore that has `N` slots; all who use the name say the same number")
	f.IntVar(&s.Take, "take", 1, "take `N` of the slots, all together")
	f.Var(&ttl, "ttl", "limit of the hold")
	f.Var(&grace, "grace", "how long the lock survives a closed connection (default: the session's lease)")
	f.StringVar(&drain, "drain", "hard", "`RULE` for new readers while we wait: hard: behind us; soft: before us; timed: before us, until none came for the --quiet-time")
	f.Var(&settle, "quiet-time", "for --drain timed")
	f.BoolVar(&s.Static, "static", false, "a lock that lives until it is released or its --ttl is over (60s; the command lock renews it as long as it runs)")
	f.StringVar(&acks, "acks", "", "`HOW` many copies must have the grant: first, majority, all (default: the zone's)")
	f.StringVar(&s.Holder, "holder", "", "`TEXT` by which people know the holder (default: host/pid, with acquire user@host)")
	f.StringVar(&data, "data", "", "`JSON` that everybody sees who asks for the lock, 16 KiB at most")
	offer(cmd, "drain", subjects.Hard, subjects.Soft, subjects.Timed)
	offer(cmd, "acks", subjects.AcksFirst, subjects.AcksMajority, subjects.AcksAll)
	return func(name string) (*cli.LockSpec, error) {
		s.Name, s.Wait, s.TTL, s.Grace, s.Settle = name, wait.Pointer(), ttl.Pointer(), grace.Pointer(), settle.Value
		if f.Changed("data") {
			s.Data = []byte(data)
		}
		var err error
		if s.Drain, err = cli.Word("--drain", drain, subjects.Hard, subjects.Soft, subjects.Timed); err != nil {
			return nil, err
		}
		s.Acks, err = cli.Word("--acks", acks, subjects.AcksDefault, subjects.AcksFirst, subjects.AcksMajority, subjects.AcksAll)
		return s, err
	}
}
