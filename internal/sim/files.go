package sim

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"github.com/opencluster/oclocks/internal/journal"
)

// files is a directory in memory: what the journal that ships writes its bytes to. A process may die in the middle of a write, the
// machine may lose what was not synced, the disk may be full or fail, and a bit may flip.
type files struct {
	lineage int // of a directory and its copies
	w       *world
	list    []*file // by name
	gone    []*file // removed, and the directory was not synced since
	locked  bool

	room    int64 // bytes that can be written yet; <0: there is no limit
	failing bool  // fsync fails
	foul    bool  // what was on the platters is damaged: a bit has flipped, or a crash has followed an fsync that failed
}

// file is one of them.
type file struct {
	name   string
	data   []byte
	synced int      // so many bytes of it are on the platters, but for the holes
	holes  [][2]int // what the kernel has dropped after an fsync that failed, and takes for written
	known  bool     // its name is
	foul   bool     // it is damaged
}

var (
	errFull  = errors.New("no space left on device")
	errFsync = errors.New("input/output error")
)

func newFiles(w *world) *files {
	w.lineages++
	return &files{w: w, room: -1, lineage: w.lineages}
}

func (d *files) find(name string) *file {
	name = filepath.Base(name)
	for _, f := range d.list {
		if f.name == name {
			return f
		}
	}
	return nil
}

// clone is a copy of the disk, made at once, as a snapshot of a virtual machine is.
func (d *files) clone() *files {
	c := newFiles(d.w)
	c.foul, c.lineage = d.foul, d.lineage
	for _, f := range d.list {
		copied := *f
		copied.data = slices.Clip(f.data) // they only grow; who flips a bit copies
		copied.synced, copied.known, copied.holes = len(f.data), true, nil
		c.list = append(c.list, &copied)
	}
	return c
}

// size is that of all files, in bytes.
func (d *files) size() (n int) {
	for _, f := range d.list {
		n += len(f.data)
	}
	return n
}

// MkdirAll, Names and the methods that follow are journal.FS.
func (d *files) MkdirAll(string) error { return nil }

func (d *files) Names(string) ([]string, error) {
	names := make([]string, len(d.list))
	for i, f := range d.list {
		names[i] = f.name
	}
	return names, nil
}

func (d *files) Open(name string) (journal.File, error) {
	f := d.find(name)
	if f == nil {
		return nil, fmt.Errorf("open %s: %w", name, os.ErrNotExist)
	}
	return &handle{d, f}, nil
}

func (d *files) Create(name string) (journal.File, error) {
	if d.room == 0 {
		return nil, fmt.Errorf("create %s: %w", name, errFull)
	}
	f := d.find(name)
	if f == nil {
		f = &file{name: filepath.Base(name)}
		d.list = append(d.list, f)
		slices.SortFunc(d.list, func(a, b *file) int { return strings.Compare(a.name, b.name) })
	}
	f.data, f.synced = nil, 0
	return &handle{d, f}, nil
}

func (d *files) Remove(name string) error {
	if f := d.find(name); f != nil {
		d.list = slices.DeleteFunc(d.list, func(o *file) bool { return o == f })
		if f.known {
			d.gone = append(d.gone, f)
		}
	}
	return nil
}

func (d *files) SyncDir(string) error {
	if d.failing {
		return errFsync
	}
	for _, f := range d.list {
		f.known = true
	}
	d.gone = nil
	return nil
}

func (d *files) Lock(string) (func() error, error) {
	if d.locked {
		return nil, journal.ErrLocked
	}
	d.locked = true
	return func() error { d.locked = false; return nil }, nil
}

// handle is an open file.
type handle struct {
	d *files
	f *file
}

func (h *handle) Close() error         { return nil }
func (h *handle) Size() (int64, error) { return int64(len(h.f.data)), nil }

func (h *handle) ReadAt(p []byte, at int64) (int, error) {
	if at >= int64(len(h.f.data)) {
		return 0, io.EOF
	}
	n := copy(p, h.f.data[at:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

func (h *handle) Write(p []byte) (int, error) {
	if h.d.room >= 0 {
		n := int(min(int64(len(p)), h.d.room))
		h.d.room -= int64(n)
		h.f.data = append(h.f.data, p[:n]...)
		if n < len(p) {
			return n, errFull
		}
		return n, nil
	}
	h.f.data = append(h.f.data, p...)
	return len(p), nil
}

func (h *handle) Truncate(size int64) error {
	h.f.data = slices.Clip(h.f.data[:size])
	h.f.synced = min(h.f.synced, int(size))
	return nil
}

func (h *handle) Sync() error {
	if h.d.failing {
		if h.f.synced < len(h.f.data) {
			h.f.holes = append(h.f.holes, [2]int{h.f.synced, len(h.f.data)})
			h.f.synced = len(h.f.data)
		}
		return errFsync
	}
	h.f.synced = len(h.f.data)
	return nil
}

// pageSize is what a kernel writes to the platters at a time, each page for itself.
const pageSize = 4096

// crash takes what was not synced: some pages of it reached the platters, others are zeroes or half of what they should be; names that
// were not synced may be as before. It says whether anything was lost.
func (d *files) crash() (lost bool) {
	d.locked, d.room, d.failing = false, -1, false
	for _, f := range d.gone {
		if d.w.draw(2) == 0 && d.find(f.name) == nil {
			d.list = append(d.list, f)
		}
	}
	d.gone = nil
	d.list = slices.DeleteFunc(d.list, func(f *file) bool {
		if !f.known && d.w.draw(2) == 0 {
			lost = lost || len(f.data) > 0
			return true
		}
		if f.crash(d.w) {
			lost = true
		}
		d.foul = d.foul || f.foul
		return false
	})
	slices.SortFunc(d.list, func(a, b *file) int { return strings.Compare(a.name, b.name) })
	return lost
}

func (f *file) crash(w *world) (lost bool) {
	f.known = true
	for _, hole := range f.holes {
		if hole[1] <= len(f.data) {
			f.data = slices.Clone(f.data)
			clear(f.data[hole[0]:hole[1]])
			f.foul = true
			lost = true
		}
	}
	f.holes = nil
	if f.synced == len(f.data) {
		return lost
	}
	data := slices.Clone(f.data[:f.synced+w.draw(len(f.data)-f.synced+1)])
	lost = lost || len(data) < len(f.data)
	for at := f.synced; at < len(data); {
		end := min(at/pageSize*pageSize+pageSize, len(data))
		if w.draw(3) == 0 { // this page did not make it, or its end did not
			clear(data[at+w.draw(end-at) : end])
			lost = true
		}
		at = end
	}
	f.data, f.synced = data, len(data)
	return lost
}

// die lets a process go in the middle of a write: of the last bytes that it wrote some are not there.
func (f *file) tear(n int) {
	f.data = slices.Clip(f.data[:len(f.data)-n])
	f.synced = min(f.synced, len(f.data))
}

// version makes the newest segment one of another version of the format, and says whether there is a segment.
func (d *files) version(v byte) bool {
	for _, f := range slices.Backward(d.list) {
		if len(f.data) >= 48 && f.name != "failed" {
			f.data = slices.Clone(f.data)
			f.data[8] = v
			binary.LittleEndian.PutUint64(f.data[40:], xxhash.Sum64(f.data[:40]))
			return true
		}
	}
	return false
}

// flip changes one bit of a file that was chosen.
func (f *file) flip(at int, bit int) {
	f.data = slices.Clone(f.data)
	f.data[at] ^= 1 << bit
}
