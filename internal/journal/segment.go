package journal

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

const (
	lockName   = "lock"
	failedName = "failed"
)

func segmentName(number uint64) string { return fmt.Sprintf("journal-%08d.log", number) }

// segmentNumber is the inverse of segmentName; other names are no segments.
func segmentNumber(name string) (uint64, bool) {
	digits, found := strings.CutPrefix(strings.TrimSuffix(name, ".log"), "journal-")
	if !found {
		return 0, false
	}
	number, err := strconv.ParseUint(digits, 10, 64)
	return number, err == nil && number > 0 && segmentName(number) == name
}

// badRecord says that the bytes at an offset of a segment are no record of its chain.
type badRecord struct {
	offset int64
	cut    bool // what is there is the beginning of a record, cut off by the end of the file
}

func (b *badRecord) Error() string {
	if b.cut {
		return fmt.Sprintf("the record at byte %d is cut off", b.offset)
	}
	return fmt.Sprintf("the record at byte %d is damaged", b.offset)
}

// reader reads the records of a segment and follows their chain.
type reader struct {
	header
	file   File
	chain  chain
	in     *bufio.Reader
	offset int64 // of the next record
	end    int64 // what is behind it is not read
	buf    []byte
}

// newReader reads the header of a segment. The error is errBadHeader, also for a file that is too short, ErrVersion, or
// that of the file system.
func newReader(file File, end int64) (*reader, error) {
	if end < headerSize {
		return nil, errBadHeader
	}
	var text [headerSize]byte
	if _, err := file.ReadAt(text[:], 0); err != nil {
		return nil, fmt.Errorf("read the header: %w", err)
	}
	h, err := decodeHeader(text[:])
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(io.NewSectionReader(file, headerSize, end-headerSize), int(min(256<<10, end)))
	return &reader{header: h, file: file, chain: newChain(h), in: in, offset: headerSize, end: end}, nil
}

// next gives the next record and its offset; the payload is valid until the next call. The error is io.EOF at the end,
// a *badRecord, or that of the file system.
func (r *reader) next() (record, int64, error) {
	at, rest := r.offset, r.end-r.offset
	if rest == 0 {
		return record{}, at, io.EOF
	}
	if rest < headSize {
		return record{}, at, &badRecord{offset: at, cut: true}
	}
	if err := r.read(0, headSize); err != nil {
		return record{}, at, err
	}
	h, ok := decodeHead(&r.chain.digest, r.seed, at, r.buf)
	if !ok {
		return record{}, at, &badRecord{offset: at}
	}
	if int64(h.length) > rest-headSize {
		return record{}, at, &badRecord{offset: at, cut: true}
	}
	if err := r.read(headSize, int(h.length)); err != nil {
		return record{}, at, err
	}
	if !r.chain.follows(r.buf) {
		return record{}, at, &badRecord{offset: at}
	}
	r.offset += int64(len(r.buf))
	return record{head: h, payload: r.buf[headSize:]}, at, nil
}

// read puts the next n bytes of the file into buf, behind the first keep bytes of it.
func (r *reader) read(keep, n int) error {
	if cap(r.buf) < keep+n {
		r.buf = append(make([]byte, 0, max(keep+n, 2*cap(r.buf))), r.buf[:keep]...)
	}
	r.buf = r.buf[:keep+n]
	if _, err := io.ReadFull(r.in, r.buf[keep:]); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
			err = errors.New("the file became shorter while it was read")
		}
		return fmt.Errorf("read %d bytes at %d: %w", n, r.offset, err)
	}
	return nil
}
