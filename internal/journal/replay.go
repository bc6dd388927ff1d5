package journal

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
)

// Replay is what a journal had in it when it was opened.
type Replay struct {
	// Unclean says that records may be missing for which Append returned nil: the machine restarted (its boot id is another
	// one, or not known) without the mark of a clean shutdown; or an fsync had failed; or the end of the last segment is
	// damaged in a way that no death of a process explains. What Each gives is then still a prefix of what was appended.
	// With Sync: Always nothing is missing after a restart of the machine, but Unclean is told all the same. Once told it is
	// told again at each start until Settled is called: the time that must be waited after the first one is not over
	// because the process restarts.
	Unclean bool

	Torn int64 // bytes dropped at the end of the last segment

	fs       FS
	dir      string
	segments []sealed
	starts   map[uint32]place // where the newest complete snapshot of a bucket begins
}

func newReplay(in *inspection) *Replay {
	p := &Replay{
		Unclean: in.unclean, Torn: in.torn, fs: in.fs, dir: in.dir,
		segments: append([]sealed(nil), in.segments...), starts: make(map[uint32]place),
	}
	for bucket, b := range in.buckets {
		if b.start != nil {
			p.starts[bucket] = *b.start
		}
	}
	return p
}

// Each calls fn for every record in the order in which they were appended; for each bucket it begins with the newest
// complete snapshot, or with change 1 where there is none. A snapshot is given whole, in memory of its own; the payload of
// a change is valid until fn returns. An error of fn ends it and is returned. Each must be done before the first call of
// StartCompaction, which lets the segments be deleted; Append disturbs it not.
func (p *Replay) Each(fn func(bucket uint32, seq uint64, kind Kind, payload []byte) error) error {
	parts := make(map[uint32][]byte) // the snapshots whose parts are being read
	for _, s := range p.segments {
		if err := p.segment(s, parts, fn); err != nil {
			return fmt.Errorf("replay %s: %w", filepath.Join(p.dir, s.name), err)
		}
	}
	return nil
}

func (p *Replay) segment(s sealed, parts map[uint32][]byte, fn func(uint32, uint64, Kind, []byte) error) error {
	f, err := p.fs.Open(filepath.Join(p.dir, s.name))
	if err != nil {
		return err
	}
	err = p.file(f, s, parts, fn)
	return errors.Join(err, f.Close())
}

func (p *Replay) file(f File, s sealed, parts map[uint32][]byte, fn func(uint32, uint64, Kind, []byte) error) error {
	r, err := newReader(f, s.size)
	if err != nil {
		return err
	}
	for {
		rec, at, err := r.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		payload := rec.payload
		if rec.kind == Snapshot {
			if payload = p.part(&rec, place{s.number, at}, parts); payload == nil {
				continue
			}
		} else if start, ok := p.starts[rec.bucket]; rec.kind != Change || ok && (place{s.number, at}).before(start) {
			continue
		}
		if err := fn(rec.bucket, rec.seq, rec.kind, payload); err != nil {
			return err
		}
	}
}

// part collects the parts of the snapshots with which buckets begin, and gives the whole with the last part.
func (p *Replay) part(rec *record, at place, parts map[uint32][]byte) []byte {
	if start, ok := p.starts[rec.bucket]; rec.part == 0 && ok && start == at {
		parts[rec.bucket] = []byte{}
	}
	whole, collecting := parts[rec.bucket]
	if !collecting {
		return nil
	}
	whole = append(whole, rec.payload...)
	parts[rec.bucket] = whole
	if !rec.last {
		return nil
	}
	delete(parts, rec.bucket)
	return whole
}
