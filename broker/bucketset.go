package broker

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math/bits"
)

// bucketSet is a set of buckets of a cluster with a known number of them.
type bucketSet []uint64

func newBucketSet(buckets int) bucketSet { return make(bucketSet, (buckets+63)/64) }

// allBuckets has every bucket.
func allBuckets(buckets int) bucketSet {
	s := newBucketSet(buckets)
	for number := range uint32(buckets) {
		s.add(number)
	}
	return s
}

func (s bucketSet) add(number uint32) { s[number/64] |= 1 << (number % 64) }

func (s bucketSet) has(number uint32) bool {
	return int(number/64) < len(s) && s[number/64]&(1<<(number%64)) != 0
}

func (s bucketSet) count() (n int) {
	for _, word := range s {
		n += bits.OnesCount64(word)
	}
	return n
}

// within says whether other has everything that this set has.
func (s bucketSet) within(other bucketSet) bool {
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

// remove takes out what another set has, which must be within this one.
func (s bucketSet) remove(other bucketSet) {
	for i, word := range other {
		s[i] &^= word
	}
}

// text is the set for a message to another node.
func (s bucketSet) text() string {
	b := make([]byte, 0, 8*len(s))
	for _, word := range s {
		b = binary.LittleEndian.AppendUint64(b, word)
	}
	return base64.RawStdEncoding.EncodeToString(b)
}

var errBucketSet = errors.New("not a set of buckets")

// readBucketSet reads what text wrote.
func readBucketSet(text string) (bucketSet, error) {
	b, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || len(b)%8 != 0 {
		return nil, errBucketSet
	}
	s := make(bucketSet, len(b)/8)
	for i := range s {
		s[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return s, nil
}
