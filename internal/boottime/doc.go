// Package boottime is the clock of all deadlines: the time since the machine started, the time that it spent suspended
// included (CLOCK_BOOTTIME of Linux), and one-shot timers on that clock.
//
// Go's own monotonic clock stands still while a machine is suspended. A lease counted on it would be trusted after the
// lid of a laptop was opened again, hours after the broker gave the lock to somebody else.
//
// # Timers
//
// On Linux a [Timer] is a timerfd on CLOCK_BOOTTIME, read through Go's network poller: the kernel itself notices at once,
// after a resume, that the deadline has passed. It costs one descriptor and one parked goroutine, so a process has a few of
// them (one for each machine that owns deadlines), not one for each lock. Where no descriptor is to be had, and on other
// systems, a Go timer takes its place that looks at the clock every 250 ms while a deadline is pending: it wakes up in vain
// now and then, and after a resume it may be late by that much, but it never fires early. Moving a deadline to a later time
// costs no system call: the timer rings at the earlier one, sees that it is not due, and is armed again.
//
// On systems other than Linux the clock is Go's monotonic clock, which may stand still while the machine is suspended; the
// promise about leases then holds only for machines that are never suspended. Brokers run on Linux.
//
// The package has no state but its timers and may not know what a deadline is for.
//
// Read in this order: clock_linux.go, timer.go, alarm_linux.go, alarm.go, bootid_linux.go.
package boottime
