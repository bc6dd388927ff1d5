package chain

import (
	"encoding/binary"
	"fmt"

	"github.com/cespare/xxhash/v2"

	"github.com/opencluster/oclocks/internal/mutant"
)

// Change is one step of the bucket's history. Its bytes mean nothing here.
type Change struct {
	Epoch uint64 // of the view under which the primary proposed it; it never changes afterwards
	Seq   uint64 // 1 and up, without gaps
	Prev  uint64 // hash of the change before
	Hash  uint64 // of all the above and Data, and so of the whole history up to here
	Data  []byte // never written to once it is here
}

func (c *Change) point() Point { return Point{Epoch: c.Epoch, Seq: c.Seq, Hash: c.Hash} }

// intact says whether the change is still what its hash says.
func (c *Change) intact() bool {
	return c.Hash == chainHash(c.Prev, c.Epoch, c.Seq, c.Data) || mutant.On(mutant.HashUnchecked)
}

// Point names a history by its last change. Two copies with the same point have the same history up to it.
type Point struct {
	Epoch, Seq, Hash uint64
}

// Newer compares by epoch, then by sequence: of two copies the one with the newer end has every answered change that the
// other one has (the argument is in doc.go).
func (p Point) Newer(q Point) bool {
	if p.Epoch != q.Epoch {
		return p.Epoch > q.Epoch
	}
	return p.Seq > q.Seq
}

func (p Point) String() string { return fmt.Sprintf("%d@e%d#%04x", p.Seq, p.Epoch, p.Hash>>48) }

// Origin is the point before the first change of a bucket. The bucket's number is in it, so that no history of one bucket
// can be taken for that of another.
func Origin(bucket uint32) Point {
	return Point{Hash: chainHash(uint64(bucket), 0, 0, []byte("oclocks chain"))}
}

// chainHash is xxhash64 over the hash before, epoch, sequence number and bytes. 64 bits against accident are enough: what
// tells two histories apart is already (epoch, seq), because one primary made each epoch's changes, one for each number.
// The hash has to notice damage (a bit that flips in memory or on the way passes with a chance of 2^-64) and programming
// errors, not an adversary: nobody but the cluster's own nodes speaks here, and a client that made two changes with one
// hash would still need two primaries to give them one epoch and one number.
func chainHash(prev, epoch, seq uint64, data []byte) uint64 {
	var head [24]byte
	binary.LittleEndian.PutUint64(head[0:], prev)
	binary.LittleEndian.PutUint64(head[8:], epoch)
	binary.LittleEndian.PutUint64(head[16:], seq)
	var d xxhash.Digest
	d.Reset()
	_, _ = d.Write(head[:]) // a Digest's Write cannot fail
	_, _ = d.Write(data)    // see above
	return d.Sum64()
}
