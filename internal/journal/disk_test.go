package journal

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sort"
	"sync"
)

// disk is a file system in memory that can fail, and whose machine can die: what was not synced is then lost in part.
type disk struct {
	mu      sync.Mutex
	files   map[string]*inode // as the running system sees it
	durable map[string]*inode // the names that are on the platters
	locked  map[string]bool

	// fault, if set, is asked before each operation. A short error of a write lets that many bytes through.
	fault func(op, name string) error
	ops   map[string]int // how often each operation was called

	after func(op, name string) // if set, called after each operation of an open file, without mu
}

type inode struct {
	data   []byte // as the running system sees it
	synced []byte // what is on the platters
}

// short is a write that ends early, with its cause or without.
type short struct {
	n     int
	cause error
}

func (s short) Error() string { return fmt.Sprintf("only %d bytes: %v", s.n, s.cause) }
func (s short) Unwrap() error { return s.cause }

func newDisk() *disk {
	return &disk{
		files: map[string]*inode{}, durable: map[string]*inode{}, locked: map[string]bool{}, ops: map[string]int{},
	}
}

func (d *disk) check(op, name string) error {
	d.ops[op]++
	if d.fault == nil {
		return nil
	}
	return d.fault(op, filepath.Base(name))
}

func (d *disk) setFault(fault func(op, name string) error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fault = fault
}

func (d *disk) count(op string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ops[op]
}

func (d *disk) MkdirAll(string) error { return nil }

func (d *disk) Names(dir string) ([]string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var names []string
	for name := range d.files {
		if filepath.Dir(name) == dir {
			names = append(names, filepath.Base(name))
		}
	}
	return names, d.check("names", dir)
}

func (d *disk) Open(name string) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check("open", name); err != nil {
		return nil, err
	}
	f := d.files[name]
	if f == nil {
		return nil, fmt.Errorf("open %s: %w", name, os.ErrNotExist)
	}
	return &handle{disk: d, name: name, inode: f}, nil
}

func (d *disk) Create(name string) (File, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check("create", name); err != nil {
		return nil, err
	}
	f := d.files[name]
	if f == nil {
		f = &inode{}
		d.files[name] = f
	}
	f.data = nil
	return &handle{disk: d, name: name, inode: f}, nil
}

func (d *disk) Remove(name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check("remove", name); err != nil {
		return err
	}
	delete(d.files, name)
	return nil
}

func (d *disk) SyncDir(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.check("syncdir", dir); err != nil {
		return err
	}
	clear(d.durable)
	for name, f := range d.files {
		d.durable[name] = f
	}
	return nil
}

func (d *disk) Lock(name string) (func() error, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locked[name] {
		return nil, ErrLocked
	}
	d.locked[name] = true
	return func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.locked, name)
		return nil
	}, nil
}

// killed is the disk after the process died: all that was written is there, and nobody has a lock.
func (d *disk) killed() *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := newDisk()
	for name, f := range d.files {
		kept := &inode{data: clone(f.data), synced: clone(f.synced)}
		after.files[name] = kept
		if d.durable[name] == f {
			after.durable[name] = kept
		}
	}
	return after
}

// sector is what reaches the platters as a whole, in the tests much smaller than it is.
const sector = 64

// crashed is the disk after the machine died: of what was not synced, names and sectors, some are there and some are not.
func (d *disk) crashed(rng *rand.Rand) *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	names := map[string]bool{}
	for name := range d.files {
		names[name] = true
	}
	for name := range d.durable {
		names[name] = true
	}
	after := newDisk()
	for _, name := range sorted(names) {
		now, before := d.files[name], d.durable[name]
		if now != before && rng.IntN(2) == 0 {
			now = before
		}
		if now == nil {
			continue
		}
		data := now.lose(rng)
		f := &inode{data: data, synced: clone(data)}
		after.files[name], after.durable[name] = f, f
	}
	return after
}

func (f *inode) lose(rng *rand.Rand) []byte {
	low, high := min(len(f.data), len(f.synced)), max(len(f.data), len(f.synced))
	data := make([]byte, low+rng.IntN(high-low+1))
	for at := 0; at < len(data); at += sector {
		from := f.synced
		if rng.IntN(2) == 0 {
			from = f.data
		}
		if at < len(from) {
			copy(data[at:min(at+sector, len(data))], from[at:])
		}
	}
	return data
}

// handle is an open file.
type handle struct {
	disk  *disk
	name  string
	inode *inode
}

func (h *handle) do(op string, fn func() error) error {
	h.disk.mu.Lock()
	err := h.disk.check(op, h.name)
	if err == nil {
		err = fn()
	}
	after := h.disk.after
	h.disk.mu.Unlock()
	if after != nil {
		after(op, filepath.Base(h.name))
	}
	return err
}

func (h *handle) ReadAt(b []byte, at int64) (n int, err error) {
	err = h.do("read", func() error {
		if at >= int64(len(h.inode.data)) {
			return io.EOF
		}
		if n = copy(b, h.inode.data[at:]); n < len(b) {
			return io.EOF
		}
		return nil
	})
	return n, err
}

func (h *handle) Write(b []byte) (n int, err error) {
	err = h.do("write", func() error {
		h.inode.data = append(h.inode.data, b...)
		n = len(b)
		return nil
	})
	if s := (short{}); errors.As(err, &s) {
		h.disk.mu.Lock()
		defer h.disk.mu.Unlock()
		n = min(s.n, len(b))
		h.inode.data = append(h.inode.data, b[:n]...)
		err = s.cause
	}
	return n, err
}

func (h *handle) Sync() error {
	return h.do("sync", func() error { h.inode.synced = clone(h.inode.data); return nil })
}

func (h *handle) Truncate(size int64) error {
	return h.do("truncate", func() error { h.inode.data = h.inode.data[:size:size]; return nil })
}

func (h *handle) Size() (size int64, err error) {
	err = h.do("size", func() error { size = int64(len(h.inode.data)); return nil })
	return size, err
}

func (h *handle) Close() error { return h.do("close", func() error { return nil }) }

func clone(b []byte) []byte { return append([]byte(nil), b...) }

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
