package sim

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/internal/journal"
)

// disk is what outlives a process: the control store, which is synced with each write and takes all of a write or nothing
// (arbiter/disk.go; bbolt itself is not here), and the files of the journal.
type disk struct {
	raft    uint64
	life    uint64 // starts of an arbiter on it
	renewed bool
	start   core.Start
	starts  flow.Starts
	mark    string // of the journal, as of the process that was registered last
	gen     int    // of that process
	copied  int    // a copy: the process that ran then
	spoiled bool   // a bit of the store has flipped: its sums tell the next start

	files   *files
	flipped []string // kinds of the flips that nobody has found yet
}

func newDisk(w *world) disk { return disk{raft: w.rnd.Uint64()>>1 | 1, files: newFiles(w)} }

// empty is arbiter.Store.Empty.
func (d *disk) empty() bool { return d.start.Snapshot == nil && d.start.HardState == nil && !d.renewed }

// renew is arbiter.Store.Renew.
func (d *disk) renew(w *world) {
	d.raft, d.renewed, d.start, d.starts = w.rnd.Uint64()>>1|1, true, core.Start{}, flow.Starts{}
}

// clone is what a backup has.
func (d *disk) clone() disk {
	c := *d
	c.start.Entries = slices.Clone(d.start.Entries)
	c.files = d.files.clone()
	c.flipped = slices.Clone(d.flipped)
	return c
}

// save is arbiter.Store.save. It says false if the process died of it or in the middle of it.
func (p *process) save(persist *core.Persist) bool {
	d := &p.m.disk
	if d.files.room >= 0 && d.files.room < storeNeeds {
		p.w.fault("disk full for the control store")
		p.fail(fmt.Errorf("write the store: %w", errFull))
		return false
	}
	if d.files.failing {
		p.w.fault("fsync failed for the control store")
		p.fail(fmt.Errorf("write the store: %w", errFsync))
		return false
	}
	torn := p.m.tear && p.w.chance(0.3)
	if torn && p.w.draw(3) == 0 {
		p.w.fault("died before storing")
		p.die("killed in the middle of storing")
		return false
	}
	d.start.Merge(persist)
	if torn {
		p.w.fault("died between storing and sending")
		p.die("killed between storing and sending")
		return false
	}
	return true
}

// storeNeeds is how much room the control store's file wants for a write, in bytes.
const storeNeeds = 4 * pageSize

// flipAtRest changes a bit somewhere in the journal, or in one of its snapshots of buckets. False: there is none.
func (d *disk) flipAtRest(w *world, kind string, snapshot bool) bool {
	var list []*file
	for _, f := range d.files.list {
		if _, ok := f.record(w, snapshot); ok {
			list = append(list, f)
		}
	}
	if len(list) == 0 {
		return false
	}
	f := list[w.draw(len(list))]
	at, _ := f.record(w, snapshot)
	f.flip(at, w.draw(8))
	d.flipped = append(d.flipped, kind)
	d.files.foul = true
	return true
}

// record finds a byte of a record, any one or of a snapshot.
func (f *file) record(w *world, snapshot bool) (at int, ok bool) {
	const header, head = 48, 32 // internal/journal, doc.go
	var found [][2]int
	for at := header; at+head <= len(f.data); {
		end := at + head + int(binary.LittleEndian.Uint32(f.data[at+12:]))
		if end > len(f.data) {
			break
		}
		if !snapshot || f.data[at+28] == byte(journal.Snapshot) {
			found = append(found, [2]int{at, end})
		}
		at = end
	}
	if len(found) == 0 {
		return 0, false
	}
	r := found[w.draw(len(found))]
	return r[0] + w.draw(r[1]-r[0]), true
}
