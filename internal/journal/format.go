package journal

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// The format of a segment is drawn in doc.go.
const (
	magic      = "oclocksJ"
	version    = 1
	headerSize = 48
	headSize   = 32

	flagUnsettled = 1

	// MaxChange is the largest change in bytes.
	MaxChange = 64 << 20

	// MaxSnapshot is the largest snapshot in bytes: as many parts as can be counted.
	MaxSnapshot = partSize << 16

	partSize = 1 << 20
)

// Kind says what a record is.
type Kind uint8

// What can be appended, and is given back by Each.
const (
	Change   Kind = 1 // one more change of a bucket
	Snapshot Kind = 2 // the whole of a bucket as it is after the change Seq; what was before it is not needed any more

	// The journal's own marks.
	markLink   Kind = 3 // the first record of a segment; seq is the sum with which the segment before ended
	markSynced Kind = 4 // seq bytes of the segment were on disk before this was written
	markClean  Kind = 5 // the journal was shut down; all before is on disk
	markBase   Kind = 6 // segments below the number seq are not needed
	markSettle Kind = 7 // what may be missing from an unclean start before was dealt with
)

// String names the kind for error messages.
func (k Kind) String() string {
	names := [...]string{
		Change: "change", Snapshot: "snapshot", markLink: "link", markSynced: "synced", markClean: "clean", markBase: "base",
		markSettle: "settled",
	}
	if k == 0 || int(k) >= len(names) {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return names[k]
}

// header is the beginning of a segment.
type header struct {
	unsettled bool // records before may be missing, and nobody has called Settled since
	number    uint64
	seed      uint64
	boot      uint64 // hash of the boot id; 0: unknown
	sum       uint64 // of the above; where the chain of the segment begins
}

func (h *header) encode() []byte {
	b := append(make([]byte, 0, headerSize), magic...)
	var flags uint32
	if h.unsettled {
		flags = flagUnsettled
	}
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint32(b, flags)
	b = binary.LittleEndian.AppendUint64(b, h.number)
	b = binary.LittleEndian.AppendUint64(b, h.seed)
	b = binary.LittleEndian.AppendUint64(b, h.boot)
	h.sum = xxhash.Sum64(b)
	return binary.LittleEndian.AppendUint64(b, h.sum)
}

var errBadHeader = errors.New("the header of the segment is damaged")

// decodeHeader reads the first headerSize bytes of a segment.
func decodeHeader(b []byte) (header, error) {
	if string(b[:8]) != magic {
		return header{}, errBadHeader
	}
	if v := binary.LittleEndian.Uint32(b[8:]); v != version {
		return header{}, fmt.Errorf("%w: version %d, this program reads version %d: use the newer program", ErrVersion, v, version)
	}
	h := header{
		unsettled: binary.LittleEndian.Uint32(b[12:])&flagUnsettled != 0,
		number:    binary.LittleEndian.Uint64(b[16:]),
		seed:      binary.LittleEndian.Uint64(b[24:]),
		boot:      binary.LittleEndian.Uint64(b[32:]),
		sum:       binary.LittleEndian.Uint64(b[40:]),
	}
	if h.sum != xxhash.Sum64(b[:40]) {
		return header{}, errBadHeader
	}
	return h, nil
}

// head is what stands before the payload of a record, without its sums.
type head struct {
	length uint32
	bucket uint32
	seq    uint64
	kind   Kind
	last   bool   // the last part of a snapshot
	part   uint16 // of a snapshot
}

// record is a head with its payload.
type record struct {
	head
	payload []byte
}

// chain makes and follows the sums of a segment's records.
type chain struct {
	seed   uint64 // of the segment
	sum    uint64 // of the record before
	digest xxhash.Digest
}

func newChain(h header) chain { return chain{seed: h.seed, sum: h.sum} }

// append encodes a record, whose head will be at the given offset of the segment, at the end of b.
func (c *chain) append(b []byte, offset int64, h head, payload []byte) []byte {
	start := len(b)
	var text [headSize]byte
	binary.LittleEndian.PutUint32(text[12:], uint32(len(payload)))
	binary.LittleEndian.PutUint32(text[16:], h.bucket)
	binary.LittleEndian.PutUint64(text[20:], h.seq)
	text[28] = byte(h.kind)
	if h.last {
		text[29] = 1
	}
	binary.LittleEndian.PutUint16(text[30:], h.part)
	binary.LittleEndian.PutUint32(text[8:], headCheck(&c.digest, c.seed, offset, text[:]))
	b = append(b, text[:]...)
	b = append(b, payload...)
	c.sum = hash(&c.digest, c.sum, b[start+8:])
	binary.LittleEndian.PutUint64(b[start:], c.sum)
	return b
}

// decodeHead reads the head at the given offset of the segment and tells whether it is one.
func decodeHead(d *xxhash.Digest, seed uint64, offset int64, b []byte) (head, bool) {
	kind := Kind(b[28])
	if kind < Change || kind > markSettle || b[29] > 1 { // most of what is no head ends here, which makes tail.go fast
		return head{}, false
	}
	if binary.LittleEndian.Uint32(b[8:]) != headCheck(d, seed, offset, b) {
		return head{}, false
	}
	h := head{
		length: binary.LittleEndian.Uint32(b[12:]),
		bucket: binary.LittleEndian.Uint32(b[16:]),
		seq:    binary.LittleEndian.Uint64(b[20:]),
		kind:   kind,
		last:   b[29] == 1,
		part:   binary.LittleEndian.Uint16(b[30:]),
	}
	return h, h.length <= MaxChange
}

// follows checks the sum of the record in b against the chain and goes on to it.
func (c *chain) follows(b []byte) bool {
	sum := hash(&c.digest, c.sum, b[8:])
	if sum != binary.LittleEndian.Uint64(b) {
		return false
	}
	c.sum = sum
	return true
}

func headCheck(d *xxhash.Digest, seed uint64, offset int64, b []byte) uint32 {
	return uint32(hash(d, seed^uint64(offset), b[12:headSize]))
}

func hash(d *xxhash.Digest, seed uint64, b []byte) uint64 {
	d.ResetWithSeed(seed)
	_, _ = d.Write(b) // never fails
	return d.Sum64()
}
