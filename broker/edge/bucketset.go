package edge

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math/bits"
)

// BucketSet is a set of buckets of a cluster with a known number of them.
type BucketSet []uint64

// NewBucketSet has none.
func NewBucketSet(buckets int) BucketSet { return make(BucketSet, (buckets+63)/64) }

// AllBuckets has every bucket.
func AllBuckets(buckets int) BucketSet {
	s := NewBucketSet(buckets)
	for number := range uint32(buckets) {
		s.Add(number)
	}
	return s
}

// Add puts a bucket in.
func (s BucketSet) Add(number uint32) { s[number/64] |= 1 << (number % 64) }

// Has says whether a bucket is in.
func (s BucketSet) Has(number uint32) bool {
	return int(number/64) < len(s) && s[number/64]&(1<<(number%64)) != 0
}

// Count is how many are in.
func (s BucketSet) Count() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// Within says whether other has everything that this set has.
func (s BucketSet) Within(other BucketSet) bool {
	if len(s) > len(other) {
		return false
	}
	for i, word := range s {
		if word&^other[i] != 0 {
			return false
		}
	}
	return true
}

// Remove takes out what another set has, which must be within this one.
func (s BucketSet) Remove(other BucketSet) {
	for i, word := range other {
		s[i] &^= word
	}
}

// Text is the set for a message to another node.
func (s BucketSet) Text() string {
	b := make([]byte, 0, 8*len(s))
	for _, word := range s {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return base64.RawStdEncoding.EncodeToString(b)
}

// ErrBucketSet is what ReadBucketSet says of what Text did not write.
var ErrBucketSet = errors.New("not a set of buckets")

// ReadBucketSet reads what Text wrote; ErrBucketSet.
func ReadBucketSet(text string) (BucketSet, error) {
	b, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || len(b)%8 != 0 {
		return nil, ErrBucketSet
	}
	s := make(BucketSet, len(b)/8)
	for i := range s {
		s[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return s, nil
}
