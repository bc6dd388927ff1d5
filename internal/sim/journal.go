package sim

import (
	"errors"
	"fmt"
	"slices"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/bucket/replicated"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/journal"
)

// keeping is a process's journal: the one that ships, on files in memory.
type keeping struct {
	*journal.Journal
	records    []journal.Record
	compacting bool
}

// past is what the journal had: broker/tables.go.
type past struct {
	starts replicated.Past
	whole  bool
	lacks  func(mark string) bool
}

// openJournal is Daemon.openJournal.
func (p *process) openJournal() (past, error) {
	d := &p.m.disk
	boot := fmt.Sprintf("boot %d", p.m.boots0)
	j, replay, err := journal.Open("journal", journal.Options{
		Sync: p.w.mix.sync, CompactBytes: p.w.mix.compact, SegmentBytes: p.w.mix.segment, FS: d.files, Driven: true,
		BootID: func() (string, error) { return boot, nil },
	})
	if err != nil {
		return past{}, fmt.Errorf("open the journal: %w", err)
	}
	p.keeping.Journal = j
	if replay.Torn > 0 {
		p.w.fault("journal torn")
		p.m.found()
	}
	table := func(number uint32) bucket.Config { return p.w.tableConfig(number, conf.MaxBuckets) }
	starts, err := replicated.ReadPast(table, func(take func(uint32, uint64, bool, []byte) error) error {
		return replay.Each(func(number uint32, seq uint64, kind journal.Kind, payload []byte) error {
			return take(number, seq, kind == journal.Snapshot, payload)
		})
	})
	if err != nil {
		return past{}, err
	}
	return past{starts: starts, whole: !replay.Unclean && len(starts) > 0, lacks: replay.Lacks}, nil
}

// readJournal opens the journal, and says whether the start goes on.
func (p *process) readJournal() bool {
	d := &p.m.disk
	if d.spoiled { // an operator gives the node an empty disk
		p.w.fault("bit flipped in a control store")
		*d, p.m.copies = newDisk(p.w), nil
		p.fail(errors.New("the control store is damaged"))
		return false
	}
	var err error
	p.past, err = p.openJournal()
	switch {
	case err == nil:
		return true
	case errors.Is(err, journal.ErrCorrupt) && p.m.disk.files.foul:
		// An operator moves the directory away, as the error says.
		p.m.found()
		d.files = newFiles(p.w)
		p.fail(err)
	case errors.Is(err, journal.ErrVersion) && d.files.version(1): // an operator starts the newer program's journal with that one
		p.w.fault("journal of a newer version")
		p.fail(err)
	case errors.Is(err, errFull), errors.Is(err, errFsync):
		d.files.suffer(err)
		p.fail(err)
	default:
		p.w.fail("%v cannot read its journal: %v", p.m, err)
	}
	return false
}

// found counts the flips of bits that a start has noticed.
func (m *machine) found() {
	for _, kind := range m.disk.flipped {
		m.w.fault(kind)
	}
	m.disk.flipped = nil
}

// suffer counts what a disk that is full or fails has done.
func (d *files) suffer(err error) {
	switch {
	case errors.Is(err, errFull):
		d.w.fault("disk full")
	case errors.Is(err, errFsync):
		d.w.fault("fsync failed")
	}
}

// store is Daemon.commit: nothing else happens before the records are written. It says false if the process died of it.
func (p *process) store(records []replicated.Record) bool {
	if len(records) == 0 {
		return true
	}
	k := &p.keeping
	k.records = k.records[:0]
	for i := range records {
		r := &records[i]
		kind := journal.Change
		if r.Whole {
			kind = journal.Snapshot
		}
		k.records = append(k.records, journal.Record{Bucket: r.Bucket, Seq: r.Number, Kind: kind, Payload: r.Payload})
	}
	d := p.m.disk.files
	before := d.size()
	if err := k.Append(k.records); err != nil {
		d.suffer(err)
		p.fail(fmt.Errorf("write the journal: %w", err))
		return false
	}
	if p.m.tear {
		p.w.fault("died in the middle of a write")
		d.tear(p.w.draw(d.size() - before + 1))
		p.die("killed in the middle of a write")
		return false
	}
	if k.NeedsCompaction() {
		p.compact()
	}
	return true
}

// tear takes bytes from the end of the segment that is written to.
func (d *files) tear(n int) {
	for _, f := range slices.Backward(d.list) {
		if len(f.data) > 48 && f.name != "failed" { // a header was synced before there was a record
			f.tear(min(n, len(f.data)-48))
			return
		}
	}
}

// turnJournal is the journal's goroutine, and Daemon.watchJournal.
func (p *process) turnJournal() {
	if p.keeping.Journal == nil {
		return
	}
	p.keeping.Turn()
	if err := p.keeping.Err(); err != nil {
		p.m.disk.files.suffer(err)
		p.fail(fmt.Errorf("write the journal: %w", err))
	}
}

// settle is Daemon.settle.
func (p *process) settle() bool {
	if err := p.keeping.Settled(); err != nil {
		p.m.disk.files.suffer(err)
		p.fail(fmt.Errorf("write the journal: %w", err))
		return false
	}
	return true
}

// compact is Daemon.compactor: one bucket after the other writes its image.
func (p *process) compact() {
	k := &p.keeping
	if k.compacting || len(p.shards) == 0 {
		return
	}
	if err := k.StartCompaction(); err != nil {
		return // the next write tells, or it is tried again
	}
	k.compacting = true
	p.image(0)
}

// imagePause is that of broker/tables.go.
const imagePause = 200 * ms

func (p *process) image(number uint32) {
	if number >= p.count {
		p.keeping.compacting = false
		p.w.fault("journal compacted")
		return
	}
	s := p.shardOf(number)
	s.put(func() {
		c := s.cell(number)
		if c == nil {
			p.image(number + 1)
			return
		}
		s.touch(c).Image(s.now.Boot, func(lost bool) {
			if lost {
				p.timer(imagePause, func() { p.image(number) })
				return
			}
			p.image(number + 1)
		})
	})
}
