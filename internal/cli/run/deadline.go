package run

import "time"

const (
	// maxGrace bounds what a command gets between SIGTERM and SIGKILL, however long its lease is: after a loss that the
	// broker told, the lock may have another holder already.
	maxGrace = 10 * time.Second
	// noLeaseGrace is what it gets when the hold has no lease that could be over.
	noLeaseGrace = 5 * time.Second
)

// Grace is how long a command may live on after its lock is lost or no longer trusted: an eighth of the lease. The trust
// ends at 3/4 of the lease and the broker hands on after the whole of it, so SIGKILL comes at 7/8, and the last eighth is
// for the kernel, the clocks and the messages.
func Grace(lease time.Duration) time.Duration {
	if lease <= 0 {
		return noLeaseGrace
	}
	return min(lease/8, maxGrace)
}
