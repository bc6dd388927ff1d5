package journal

import (
	"errors"
	"fmt"
	"io"

	"github.com/cespare/xxhash/v2"
)

// evidence is what the bytes behind a bad record tell.
type evidence struct {
	records bool  // some of them are the head of a record
	synced  int64 // the segment was on disk up to here, by its marks
}

// search looks for heads at every offset from the given one to the end of the segment. A head is known by its check alone,
// which is made with the segment's random seed and the offset, so nothing that a client had stored can look like one.
func (r *reader) search(from int64) (evidence, error) {
	var found evidence
	var digest xxhash.Digest
	buf := make([]byte, min(1<<20, max(0, r.end-from)))
	for from+headSize <= r.end {
		window := buf[:min(int64(len(buf)), r.end-from)]
		if n, err := r.file.ReadAt(window, from); n < len(window) && err != nil {
			if errors.Is(err, io.EOF) {
				err = errors.New("the file became shorter while it was read")
			}
			return found, fmt.Errorf("read %d bytes at %d: %w", len(window), from, err)
		}
		for i := 0; i+headSize <= len(window); i++ {
			at := from + int64(i)
			h, ok := decodeHead(&digest, r.seed, at, window[i:i+headSize])
			if !ok {
				continue
			}
			found.records = true
			switch h.kind {
			case markSynced:
				found.synced = max(found.synced, int64(h.seq))
			case markClean:
				found.synced = max(found.synced, at)
			}
		}
		from += int64(len(window)) - headSize + 1
	}
	return found, nil
}

// judge decides whether a bad record in the last segment is where a crash has cut the journal off, or damage: see doc.go.
// sameBoot says that the kernel which wrote the segment is still running, so that nothing it was given can be lost.
func (r *reader) judge(bad *badRecord, sameBoot bool) (torn bool, err error) {
	found, err := r.search(bad.offset + 1)
	if err != nil {
		return false, err
	}
	damage := found.synced > bad.offset || found.records && sameBoot
	return !damage, nil
}
