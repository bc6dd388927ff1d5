package subjects

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
)

// Index is the index of a lock's name: xxhash64 of its bytes with seed 0.
func Index(name string) uint64 {
	return xxhash.Sum64String(name)
}

// BucketOf is the bucket that a name belongs to. buckets is a power of two, at least 1.
func BucketOf(name string, buckets uint32) uint32 {
	return uint32(Index(name) & uint64(buckets-1))
}

// TokenHash is what one hold adds, by XOR, to the hash of a keep-alive's reply: xxhash64 of the fencing token's 8
// big-endian bytes.
func TokenHash(token uint64) uint64 {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], token)
	return xxhash.Sum64(b[:])
}
