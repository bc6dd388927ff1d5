package replicated

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/opencluster/oclocks/bucket/chain"
)

// ErrRecord says that a record of the journal is not one that this package wrote, or does not follow the one before.
var ErrRecord = errors.New("the journal's record of a bucket does not make sense")

// Record is something for the journal. Number counts the records of a bucket without gaps, from 1; it is not a sequence
// number of the chain.
type Record struct {
	Bucket  uint32
	Number  uint64
	Whole   bool // the records before are not needed any more
	Payload []byte
}

// recordKind is the first byte of a payload.
type recordKind uint8

const (
	recordChange recordKind = 1 + iota // epoch, hash, confirmed, data
	recordState                        // the copy's state
	recordCut                          // sequence number: changes after it do not count
	recordDrop                         // the copy begins anew with nothing
	recordWhole                        // state, base, confirmed, table, changes after it
)

func appendChange(buf []byte, c *chain.Change, confirmed uint64) []byte {
	buf = append(buf, byte(recordChange))
	buf = binary.AppendUvarint(buf, c.Epoch)
	buf = binary.LittleEndian.AppendUint64(buf, c.Hash)
	buf = binary.AppendUvarint(buf, confirmed)
	return append(buf, c.Data...)
}

func appendState(buf []byte, s *chain.State) []byte {
	for _, v := range []uint64{s.Self.Node, s.Self.Inc, s.Epoch, s.Sealed} {
		buf = binary.AppendUvarint(buf, v)
	}
	return buf
}

func appendPoint(buf []byte, p chain.Point) []byte {
	buf = binary.AppendUvarint(buf, p.Epoch)
	buf = binary.AppendUvarint(buf, p.Seq)
	return binary.LittleEndian.AppendUint64(buf, p.Hash)
}

// reader reads the fields of a payload; after the first that is not there, bad is set and all are zero.
type reader struct {
	buf []byte
	bad bool
}

func (r *reader) num() uint64 {
	v, n := binary.Uvarint(r.buf)
	if n <= 0 {
		r.bad, r.buf = true, nil
		return 0
	}
	r.buf = r.buf[n:]
	return v
}

func (r *reader) hash() uint64 {
	if len(r.buf) < 8 {
		r.bad, r.buf = true, nil
		return 0
	}
	v := binary.LittleEndian.Uint64(r.buf)
	r.buf = r.buf[8:]
	return v
}

func (r *reader) bytes() []byte {
	n := r.num()
	if uint64(len(r.buf)) < n {
		r.bad, r.buf = true, nil
		return nil
	}
	b := r.buf[:n:n]
	r.buf = r.buf[n:]
	return b
}

func (r *reader) state() chain.State {
	return chain.State{Self: chain.Member{Node: r.num(), Inc: r.num()}, Epoch: r.num(), Sealed: r.num()}
}

func (r *reader) point() chain.Point {
	return chain.Point{Epoch: r.num(), Seq: r.num(), Hash: r.hash()}
}

func (r *reader) end() error {
	if r.bad || len(r.buf) > 0 {
		return fmt.Errorf("%w: its fields do not end where it ends", ErrRecord)
	}
	return nil
}
