package core

import (
	"fmt"
	"time"
)

// Limits. What is beyond them is refused or dropped, never kept.
const (
	MaxCommand   = 4 << 20 // bytes of one command
	MaxNote      = 4096    // bytes of the note of a lease request
	MaxRefusal   = 512     // bytes of the text of a refusal
	MaxFrame     = 256 << 10
	maxWhole     = 256 << 20 // bytes of what is put together from parts
	maxProposals = 512       // of this node that wait
	maxReads     = 4096      // of this node that wait
	maxAsks      = 4096      // that wait for the leader's next ReadIndex
	maxMembers   = 1024
	window       = 1024 // ids of one proposer that the group tells apart
	keepEntries  = 1024 // entries kept behind a snapshot, for members that are a little late
	keepDigests  = 64
	maxLag       = 64 // entries that a learner may be behind when it is promoted
)

// DefaultPriority is that of members that SetPriorities does not name.
const DefaultPriority = 8

// lastPriority leads only if nothing else is left.
const lastPriority = 15

// reluctantPriority is what a reluctant node gives itself: anybody else is better.
const reluctantPriority = 16

// Config of a node. Times are nanoseconds.
type Config struct {
	ID   uint64 // raft ID: random, never 0, made with the store, never used by another store
	Life uint64 // rises with every start from the same store, from 1

	Lease     int64 // the same on all nodes, 10 ms to 1 h
	Renew     int64 // how often a lease is asked for, at most Lease/3
	Heartbeat int64 // at least 1 ms
	Election  int64 // at least 2 Heartbeat, at most 1 min: a leader that is silent so long is given up

	Reluctant bool // campaigns only if nobody else can lead, see doc.go

	// MayLease refuses a node its lease with an error; nil refuses nobody. raft is the raft ID of who asks under the number. It
	// is called on the leader.
	MayLease func(number, raft uint64) error
	// Log gets remarks of Raft that people may want to see; nil drops them.
	Log func(text string)
}

// Validate says what of a configuration cannot be; errors wrap ErrConfig.
func (c *Config) Validate() error {
	switch {
	case c.ID == 0 || c.ID >= 1<<64-2: // the highest two mean threads of the library
		return fmt.Errorf("%w: raft ID %d", ErrConfig, c.ID)
	case c.Life == 0:
		return fmt.Errorf("%w: life 0", ErrConfig)
	case c.Lease < int64(10*time.Millisecond) || c.Lease > int64(time.Hour):
		return fmt.Errorf("%w: lease of %v, want 10ms to 1h", ErrConfig, time.Duration(c.Lease))
	case c.Renew <= 0 || c.Renew > c.Lease/3:
		return fmt.Errorf("%w: a lease of %v renewed every %v, want at most a third of it", ErrConfig, time.Duration(c.Lease), time.Duration(c.Renew))
	case c.Heartbeat < int64(time.Millisecond):
		return fmt.Errorf("%w: heartbeat every %v, want at least 1ms", ErrConfig, time.Duration(c.Heartbeat))
	case c.Election < 2*c.Heartbeat || c.Election > int64(time.Minute):
		return fmt.Errorf("%w: election after %v, want two heartbeats to 1m", ErrConfig, time.Duration(c.Election))
	}
	return nil
}
