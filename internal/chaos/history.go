package chaos

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/opencluster/oclocks/internal/check"
)

// history is the recordings of all processes of a run, which it merges and checks piece by piece while they are being written.
// It keeps in memory what some process may still be earlier than: as long as one is stopped, what the others have recorded.
type history struct {
	checker *check.Checker
	tapes   []*tape
	told    int // violations

	operations int // what clients asked
}

// tape is one recording.
type tape struct {
	path  string
	read  int64  // bytes
	rest  []byte // read, not yet checked
	ended bool   // nobody writes any more
	done  int64  // when all of it was checked, in the history's time
}

func newHistory(opt check.Options) *history { return &history{checker: check.New(opt)} }

// begin adds a recording, which need not be there yet.
func (h *history) begin(path string) *tape {
	t := &tape{path: path}
	h.tapes = append(h.tapes, t)
	return t
}

// advance checks everything before which nothing can come any more. It gives the violations that were not given before.
func (h *history) advance() ([]check.Violation, error) {
	safe := check.Never
	for _, t := range h.tapes {
		if !t.ended {
			safe = min(safe, readMark(t.path)) // before its events are read: those that come later are later
		}
	}
	var piece []io.Reader
	for _, t := range h.tapes {
		if err := t.fill(); err != nil {
			return nil, err
		}
		lines, err := t.until(safe)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.path, err)
		}
		if len(lines) > 0 {
			piece = append(piece, bytes.NewReader(lines))
			for _, kind := range []string{"ask", "seen", "checked"} {
				h.operations += bytes.Count(lines, []byte(`"kind":"`+kind+`"`))
			}
		}
		if t.ended && t.done == 0 && safe != check.Never {
			t.done = safe
		}
	}
	if err := h.checker.Read(check.Merge(piece...)); err != nil {
		return nil, fmt.Errorf("check a piece of the history: %w", err)
	}
	return h.fresh(), nil
}

// fresh gives the violations that were not given before.
func (h *history) fresh() []check.Violation {
	all := h.checker.Violations()
	fresh := all[min(h.told, len(all)):]
	h.told = len(all)
	return fresh
}

// forget removes the recordings that were over at a time: they tell nothing any more about what may come.
func (h *history) forget(before int64) {
	kept := h.tapes[:0]
	for _, t := range h.tapes {
		if t.done == 0 || t.done >= before || len(t.rest) > 0 {
			kept = append(kept, t)
			continue
		}
		os.Remove(t.path) // it costs space only
		os.Remove(markFile(t.path))
	}
	h.tapes = kept
}

// fill reads what was written since.
func (t *tape) fill() error {
	file, err := os.Open(t.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read a recording: %w", err)
	}
	defer file.Close()
	if _, err := file.Seek(t.read, io.SeekStart); err != nil {
		return fmt.Errorf("read a recording: %w", err)
	}
	text, err := io.ReadAll(file)
	t.read += int64(len(text))
	t.rest = append(t.rest, text...)
	if err != nil {
		return fmt.Errorf("read a recording: %w", err)
	}
	return nil
}

// until takes the lines whose time is before a limit.
func (t *tape) until(limit int64) ([]byte, error) {
	at := 0
	for at < len(t.rest) {
		end := bytes.IndexByte(t.rest[at:], '\n')
		if end < 0 {
			break
		}
		when, err := lineTime(t.rest[at : at+end])
		if err != nil {
			return nil, err
		}
		if when >= limit {
			break
		}
		at += end + 1
	}
	lines := bytes.Clone(t.rest[:at])
	t.rest = append(t.rest[:0], t.rest[at:]...)
	return lines, nil
}

// lineTime is the time of an event in a recording, which is what its line begins with.
func lineTime(line []byte) (int64, error) {
	rest, ok := bytes.CutPrefix(line, []byte(`{"at":`))
	end := bytes.IndexByte(rest, ',')
	if !ok || end < 0 {
		return 0, fmt.Errorf("no event: %.80q", line)
	}
	when, err := strconv.ParseInt(string(rest[:end]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("no event: %.80q: %w", line, err)
	}
	return when, nil
}
