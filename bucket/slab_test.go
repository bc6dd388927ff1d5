package bucket

import (
	"runtime"
	"testing"
)

// "When the last record goes, so does the memory of a busier time."
func TestSlabGivesItsMemoryBack(t *testing.T) {
	const records, size = 1 << 12, 1 << 10
	s := slab[[size]byte]{bits: 6}
	live := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := live()
	for range records {
		s.take()
	}
	busy := live()
	for id := uint32(1); id <= records; id++ {
		s.release(id)
	}
	after := live()
	if busy < before+records*size || after > before+records*size/2 {
		t.Fatalf("%d bytes before, %d with %d records of %d, %d when they are gone", before, busy, records, size, after)
	}
	if id, _ := s.take(); id != 1 {
		t.Fatalf("the first record has the number %d", id)
	}
}
