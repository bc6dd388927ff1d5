package journal

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// inspection is what Open finds in a directory before it changes anything there.
type inspection struct {
	fs   FS
	dir  string
	boot uint64 // hash of the boot id of now; 0: unknown

	survey
	segments []sealed // the torn end of the last with records is not counted in its size
	tail     int      // index of the last that has records, -1: none has
	end      header   // of the last segment
	unneeded []sealed // those below the base
	failed   bool     // the journal failed before, and its segments may not be on disk, whatever fsync says
	torn     int64    // bytes behind the end of the last segment with records
	unclean  bool     // records may be missing for which Append returned nil
}

func bootHash(id string) uint64 {
	if id == "" {
		return 0
	}
	return xxhash.Sum64String(id)
}

// inspect reads the whole journal. The error is ErrCorrupt, ErrVersion, or the file system's.
func inspect(fs FS, dir string, boot uint64) (*inspection, error) {
	in := &inspection{fs: fs, dir: dir, boot: boot, survey: *newSurvey()}
	if err := in.list(); err != nil {
		return nil, err
	}
	var before uint64
	for i := range in.segments {
		s := &in.segments[i]
		if s.number != before+1 {
			in.problem(s.number-1, fmt.Errorf("the segments %s to %s are missing", segmentName(before+1), segmentName(s.number-1)))
		}
		before = s.number
		if err := in.with(s.name, func(f File) error { return in.readSegment(f, i) }); err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(dir, s.name), err)
		}
	}
	if err := in.result(); err != nil {
		return nil, fmt.Errorf("%w: in %s: %w. Nothing was changed. Put the files back as they were from a copy of the disk; "+
			"or move the directory away to begin with an empty one: the locks in it are forgotten then, so wait for the longest "+
			"lease before you start", ErrCorrupt, dir, err)
	}
	in.unclean = in.unclean || in.unsettled
	if n := len(in.segments); n > 0 && in.end.number != in.segments[n-1].number {
		in.segments = in.segments[:n-1] // its header was never finished
	}
	for len(in.segments) > 0 && in.segments[0].number < in.base {
		in.unneeded = append(in.unneeded, in.segments[0])
		in.segments = in.segments[1:]
		in.tail--
	}
	return in, nil
}

// list finds the segments. Those behind the last one with records were created and not used.
func (in *inspection) list() error {
	names, err := in.fs.Names(in.dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if name == failedName {
			in.failed = true
		}
		number, ok := segmentNumber(name)
		if !ok {
			continue
		}
		size, err := in.size(name)
		if err != nil {
			return err
		}
		in.segments = append(in.segments, sealed{number: number, name: name, size: size})
	}
	slices.SortFunc(in.segments, func(a, b sealed) int { return cmp.Compare(a.number, b.number) })
	in.tail = len(in.segments) - 1
	for in.tail >= 0 && in.segments[in.tail].size <= headerSize {
		in.tail--
	}
	return nil
}

func (in *inspection) size(name string) (int64, error) {
	var size int64
	err := in.with(name, func(f File) (err error) {
		size, err = f.Size()
		return err
	})
	return size, err
}

// with opens the file of a segment for fn.
func (in *inspection) with(name string, fn func(f File) error) error {
	f, err := in.fs.Open(filepath.Join(in.dir, name))
	if err != nil {
		return err
	}
	return errors.Join(fn(f), f.Close())
}

// sameBoot tells whether the kernel to which a segment was written is still running, so that nothing it was given is lost.
func (in *inspection) sameBoot(h header) bool { return in.boot != 0 && h.boot == in.boot && !in.failed }

// readSegment surveys one segment. What is wrong with it becomes a problem of the survey, or the torn end of the tail.
func (in *inspection) readSegment(f File, index int) error {
	s := &in.segments[index]
	r, err := newReader(f, s.size)
	switch {
	case errors.Is(err, errBadHeader):
		in.badHeader(index)
		return nil
	case err != nil:
		return err
	case r.number != s.number:
		in.problem(s.number, fmt.Errorf("%s says of itself that it is %s", s.name, segmentName(r.number)))
		return nil
	}
	in.end, s.seed = r.header, r.seed
	sameBoot := in.sameBoot(r.header)
	err = in.read(r)
	var bad *badRecord
	if errors.As(err, &bad) {
		err = in.badRecord(r, index, bad, sameBoot)
	}
	// A segment behind the tail may have had records that are lost now, whatever mark the tail ends with.
	if !sameBoot && (index > in.tail || index == in.tail && !in.clean) {
		in.unclean = true
	}
	return err
}

// badHeader takes in a segment without a header. Only the last one can be so, if the machine died while it was created.
func (in *inspection) badHeader(index int) {
	s := in.segments[index]
	if index < len(in.segments)-1 || s.size > headerSize {
		in.problem(s.number, fmt.Errorf("%s: %w", s.name, errBadHeader))
	} else if s.size == headerSize {
		in.unclean = true // or it was damaged later, and nobody knows whether it had records
	}
}

func (in *inspection) badRecord(r *reader, index int, bad *badRecord, sameBoot bool) error {
	s := &in.segments[index]
	torn := false
	if index == in.tail {
		var err error
		if torn, err = r.judge(bad, sameBoot); err != nil {
			return err
		}
	}
	if !torn {
		in.problem(s.number, fmt.Errorf("%s: %w", s.name, bad))
		return nil
	}
	in.torn, s.size = s.size-bad.offset, bad.offset
	in.clean = false
	if !bad.cut { // a process that dies cuts its last write off and changes nothing else
		in.unclean = true
	}
	return nil
}
