package chaos

import (
	"encoding/binary"
	"fmt"
	"os"
	"sync"

	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/internal/check"
)

// recorder writes the history of one process. Besides the events it writes, into a file of its own, a time before which no event
// will come any more (its mark), so that the histories of many processes can be merged while they go on.
type recorder struct {
	mu     sync.Mutex // an event gets its time and is written, or a mark, and nothing between
	events *check.Writer
	file   *os.File
	marks  *os.File
	err    error
	count  int
}

// markFile is the name of the file with the mark of a recording.
func markFile(file string) string { return file + ".mark" }

// newRecorder begins a recording. The files must not be there.
func newRecorder(path string) (*recorder, error) {
	const flags = os.O_CREATE | os.O_EXCL | os.O_WRONLY
	marks, err := os.OpenFile(markFile(path), flags, 0o644) //nolint:gosec // for people to read
	if err != nil {
		return nil, fmt.Errorf("begin a recording: %w", err)
	}
	file, err := os.OpenFile(path, flags|os.O_APPEND, 0o644) //nolint:gosec // for people to read
	if err != nil {
		marks.Close()
		return nil, fmt.Errorf("begin a recording: %w", err)
	}
	r := &recorder{events: check.NewWriter(file, boottime.Now), file: file, marks: marks}
	r.mark()
	return r, r.err
}

// add writes an event that happens now, and gives its time.
func (r *recorder) add(e check.Event) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	e.At = boottime.Now()
	r.note(r.events.Add(&e))
	r.count++
	return e.At
}

// mark promises that no event will come that is earlier than now.
func (r *recorder) mark() {
	r.mu.Lock()
	defer r.mu.Unlock()
	var now [8]byte
	binary.BigEndian.PutUint64(now[:], uint64(boottime.Now()))
	_, err := r.marks.WriteAt(now[:], 0)
	r.note(err)
}

func (r *recorder) note(err error) {
	if r.err == nil {
		r.err = err
	}
}

// failed is what went wrong with the writing: a history with a gap proves nothing.
func (r *recorder) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// readMark gives the mark of a recording, 0 if it has none yet.
func readMark(path string) int64 {
	text, err := os.ReadFile(markFile(path))
	if err != nil || len(text) != 8 {
		return 0
	}
	return int64(binary.BigEndian.Uint64(text))
}
