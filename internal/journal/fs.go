package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// FS is what the journal needs of a file system; tests inject faults with it.
type FS interface {
	MkdirAll(dir string) error                         // for the owner only
	Names(dir string) ([]string, error)                // of the files in dir, in any order
	Open(name string) (File, error)                    // an existing file; writes go to its end
	Create(name string) (File, error)                  // for the owner only; emptied if it exists; writes go to its end
	Remove(name string) error                          // no error if there is none
	SyncDir(dir string) error                          // makes created and removed names durable
	Lock(name string) (unlock func() error, err error) // ErrLocked if another has it
}

// File is an open file of an FS.
type File interface {
	io.ReaderAt
	io.Writer
	io.Closer
	Sync() error
	Truncate(size int64) error
	Size() (int64, error)
}

type osFS struct{}

func (osFS) MkdirAll(dir string) error { return os.MkdirAll(dir, 0o700) }

func (osFS) Names(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

func (osFS) Open(name string) (File, error) { return openFile(name, os.O_RDWR|os.O_APPEND) }

func (osFS) Create(name string) (File, error) {
	return openFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC|os.O_APPEND)
}

func openFile(name string, flag int) (File, error) {
	f, err := os.OpenFile(name, flag, 0o600)
	if err != nil {
		return nil, err
	}
	return osFile{f}, nil
}

func (osFS) Remove(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (osFS) SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	if err := d.Sync(); err != nil {
		return errors.Join(fmt.Errorf("sync the directory %s: %w", dir, err), d.Close())
	}
	return d.Close()
}

type osFile struct{ *os.File }

func (f osFile) Size() (int64, error) {
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
