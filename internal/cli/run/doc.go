// Package run runs a command while a lock is held: the process half of `oclocks-cli lock NAME -- CMD`.
//
// It knows nothing of brokers. A [Job] says what to run, which channel closes when the lock is lost, and how long the
// command may then still take; [Run] gives back how the command ended. What it promises:
//
//   - the command is the leader of a process group of its own, and what is sent to it is sent to the whole group;
//   - on a terminal that group is in the foreground while it runs, so Ctrl-C, Ctrl-Z and reads work as without a lock;
//   - SIGTERM goes to the group the moment the lock is lost, SIGKILL when [Job.KillIn] says so, and Run returns only when
//     nobody of the group is left, or says in the result that somebody is;
//   - on Linux the command gets SIGKILL from the kernel when this process dies without a word. That reaches the command
//     itself, not what it has started.
//
// The package takes no lock, releases none, and prints nothing.
//
// Read in this order: run.go (the loop), child.go (one process), group.go (all of them), terminal.go, environ.go,
// exit.go (exit codes).
package run
