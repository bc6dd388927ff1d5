package subjects

import "testing"

// The values are those of the reference implementation of xxHash (XXH64, seed 0).
func TestIndex(t *testing.T) {
	for name, want := range map[string]uint64{
		"":    0xef46db3751d8e999,
		"a":   0xd24ec4f1a98c6e5b,
		"abc": 0x44bc2cf5ad770999,
	} {
		if got := Index(name); got != want {
			t.Errorf("Index(%q) = %016x, want %016x", name, got, want)
		}
	}
}

// "bucket = xxhash64(name) & (buckets - 1)"
func TestBucketOf(t *testing.T) {
	for buckets, want := range map[uint32]uint32{1: 0, 2: 1, 256: 0x99, 1 << 31: 0x2d770999} {
		if got := BucketOf("abc", buckets); got != want {
			t.Errorf("BucketOf(abc, %d) = %d, want %d", buckets, got, want)
		}
	}
}

// "xxhash64 over each token's 8 bytes"
func TestTokenHash(t *testing.T) {
	token := uint64(0x0102030405060708)
	if got, want := TokenHash(token), Index("\x01\x02\x03\x04\x05\x06\x07\x08"); got != want {
		t.Errorf("TokenHash = %016x, want %016x", got, want)
	}
}
