package chain

import (
	"bytes"
	"fmt"
	"testing"
)

// TestBlocksStay: no bytes of a change become another's, also where less is put into the room than was asked for, or more.
func TestBlocksStay(t *testing.T) {
	var b blocks
	var got, want [][]byte
	for i := range 2000 {
		data := bytes.Repeat([]byte{byte(i)}, i*7%1500)
		room := b.room(len(data))
		if len(room) != 0 || cap(room) < len(data) {
			t.Fatalf("room for %d bytes has %d, and room for %d", len(data), len(room), cap(room))
		}
		if len(data) <= blockMost && cap(room) != len(data) {
			t.Fatalf("a part of a block for %d bytes has room for %d", len(data), cap(room))
		}
		switch i % 3 {
		case 0:
			data = data[:len(data)/2]
		case 1:
			data = append(data, "and more"...)
		}
		got, want = append(got, append(room, data...)), append(want, data)
	}
	for i := range got {
		if !bytes.Equal(got[i], want[i]) {
			t.Fatalf("change %d is not what it was", i)
		}
	}
}

// TestChangesShareMemory holds what the bytes of a change cost the primary's history.
func TestChangesShareMemory(t *testing.T) {
	for _, size := range []int{1, 100, blockMost} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			var b blocks
			data := bytes.Repeat([]byte{1}, size)
			const changes = 64
			most := float64(changes*size/(blockSize-blockMost) + 1)
			if got := testing.AllocsPerRun(10, func() {
				for range changes {
					if kept := append(b.room(size), data...); len(kept) != size {
						t.Fatal("bytes are missing")
					}
				}
			}); got > most {
				t.Errorf("%v allocations for %d changes, want %v", got, changes, most)
			}
		})
	}
}
