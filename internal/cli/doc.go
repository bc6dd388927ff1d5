// Package cli is what the commands of oclocks-cli do; the command line itself (flags, help) is in cmd/oclocks-cli.
//
// An [App] is one invocation: where it prints, how it connects, the signals it gets. Its methods return errors; what is
// said about them, what to do next, and the exit code are decided in one place, [App.Report].
//
// Below it: run (a command under a lock), output (text and JSON), top (the live view). The package decides nothing about
// locks.
//
// Read in this order: app.go, signals.go, spec.go (what to lock), lock.go with trust.go (hold a lock, run a command),
// request.go (single requests), session.go, watch.go, then codes.go and explain.go (errors), value.go and name.go (what
// is typed).
package cli
