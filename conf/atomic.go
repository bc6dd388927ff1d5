package conf

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// writeFile replaces the file, or makes it: whoever reads it finds the old content or the new one, also after a crash.
func writeFile(path string, content []byte, mode os.FileMode) error {
	return writeTemp(path, content, mode, os.Rename)
}

// createFile makes a file with all of its content at once. It is an fs.ErrExist if there is one.
func createFile(path string, content []byte, mode os.FileMode) error {
	return writeTemp(path, content, mode, os.Link)
}

// secret is the mode of files that only their owner may read.
const secret os.FileMode = 0o600

// writeTemp writes a file beside path, and puts it there once it is on the disk.
func writeTemp(path string, content []byte, mode os.FileMode, put func(from, to string) error) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		// After a rename there is nothing left to remove.
		if rmErr := os.Remove(f.Name()); !errors.Is(rmErr, os.ErrNotExist) {
			err = errors.Join(err, rmErr)
		}
	}()
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), keepOwner(f, path), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	if err := put(f.Name(), path); err != nil {
		return err
	}
	return syncDir(dir)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// keepOwner gives a file that root writes to whoever owns the one that it replaces, or else the directory: the daemon,
// which runs as somebody else, must be able to read it.
func keepOwner(f *os.File, path string) error {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		path = filepath.Dir(path)
	}
	return ownAs(f, path)
}

// ownAs gives what root makes to whoever owns the model.
func ownAs(f *os.File, model string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(model)
	if err != nil {
		return err
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && owner.Uid != 0 {
		return f.Chown(int(owner.Uid), int(owner.Gid))
	}
	return nil
}

// makeDir makes a directory and one in it, which belongs to whoever owns the first, for its owner only.
func makeDir(outer, inner string) error {
	if err := os.MkdirAll(outer, 0o700); err != nil {
		return err
	}
	err := os.Mkdir(inner, 0o700)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	d, err := os.Open(inner)
	if err != nil {
		return err
	}
	return errors.Join(ownAs(d, outer), d.Close(), syncDir(outer))
}

// lockFile waits for the lock on a file, so that two processes do not replace it at the same time. The lock ends with
// unlock or with the process.
func lockFile(path string) (unlock func() error, err error) {
	for {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		err = flock(f)
		var locked, there os.FileInfo
		if err == nil {
			locked, err = f.Stat()
		}
		if err == nil {
			there, err = os.Stat(path)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		if os.SameFile(locked, there) {
			return f.Close, nil
		}
		// It was replaced while we waited: what we have locked is nobody's file any more.
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}

func flock(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
