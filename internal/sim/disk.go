package sim

import (
	"slices"

	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/bucket/replicated"
)

// disk is what outlives a process. The control store is synced with each write (arbiter/disk.go), the journal from time to time
// (internal/journal with sync: background).
type disk struct {
	raft    uint64
	life    uint64 // starts of an arbiter on it
	renewed bool
	start   core.Start
	starts  flow.Starts

	journal []replicated.Record
	synced  int  // records that survive the machine
	unclean bool // the journal may lack what was answered
}

func newDisk(w *world) disk { return disk{raft: w.rnd.Uint64()>>1 | 1} }

// empty is arbiter.Store.Empty.
func (d *disk) empty() bool { return d.start.Snapshot == nil && d.start.HardState == nil && !d.renewed }

// renew is arbiter.Store.Renew.
func (d *disk) renew(w *world) {
	d.raft, d.renewed, d.start, d.starts = w.rnd.Uint64()>>1|1, true, core.Start{}, flow.Starts{}
}

// clone is what a backup has.
func (d *disk) clone() disk {
	c := *d
	c.journal = slices.Clone(d.journal)
	c.start.Entries = slices.Clone(d.start.Entries)
	return c
}

// sync is an fsync of the journal. What a snapshot of a bucket makes unnecessary goes with it.
func (d *disk) sync() {
	d.synced = len(d.journal)
	whole := map[uint32]uint64{}
	for i := range d.journal {
		if r := &d.journal[i]; r.Whole {
			whole[r.Bucket] = r.Number
		}
	}
	if len(whole) == 0 || len(d.journal) < 2000 {
		return
	}
	d.journal = slices.DeleteFunc(d.journal, func(r replicated.Record) bool { return r.Number < whole[r.Bucket] })
	d.synced = len(d.journal)
}
