package journal

import (
	"encoding/binary"
	"errors"
	"testing"
)

// FuzzOpen opens a journal one segment of which is any bytes. Whatever they are, Open refuses, or the journal works: it
// takes a record, and the next start gives the same and the record.
func FuzzOpen(f *testing.F) {
	whole, _, _ := small(f)
	for _, file := range whole.files {
		f.Add(file.data, false)
		f.Add(file.data[:len(file.data)-3], true)
		f.Add(file.data[:headerSize], true)
	}
	f.Add([]byte{}, false)
	f.Fuzz(func(t *testing.T, data []byte, rebooted bool) {
		opensOrRefuses(t, data, rebooted)
	})
}

// FuzzRecords opens a segment with the right sums and any heads: what a defect of the writer could leave.
func FuzzRecords(f *testing.F) {
	f.Add([]byte{1, 1, 0, 0, 3, 1, 1, 2, 0, 0, 0, 0, 1, 1, 2, 1, 0, 9})
	f.Add([]byte{2, 1, 5, 0, 3, 2, 1, 5, 1, 3, 2, 1, 5, 0x82, 3, 1, 1, 6, 0, 4})
	f.Add([]byte{3, 0, 0, 0, 0, 4, 0, 60, 0, 0, 6, 0, 9, 0, 0, 5, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		h := header{number: 1, seed: 77, boot: bootHash("one")}
		text := h.encode()
		c := newChain(h)
		for ; len(data) >= 5; data = data[5:] {
			rec := head{kind: Kind(data[0] % 8), bucket: uint32(data[1]), seq: uint64(data[2]), part: uint16(data[3] & 0x7f), last: data[3]&0x80 != 0}
			text = c.append(text, int64(len(text)), rec, make([]byte, data[4]))
		}
		opensOrRefuses(t, text, false)
	})
}

func opensOrRefuses(t *testing.T, data []byte, rebooted bool) {
	t.Helper()
	d := newDisk()
	number := uint64(1)
	if len(data) >= headerSize && data[16] < 4 { // so that numbers other than 1 are tried too
		number = max(1, binary.LittleEndian.Uint64(data[16:]))
	}
	d.files[dir+"/"+segmentName(number)] = &inode{data: data}
	id := "one"
	if rebooted {
		id = "two"
	}
	j, replay, err := reopen(d, id)
	if err != nil {
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
			t.Fatal(err)
		}
		return
	}
	first := entries(t, replay)
	check(t, j.Settled())
	next := entry{1 << 20, 1, Change, "next"}
	check(t, j.Append(records([]entry{next})))
	check(t, j.Close(true))
	j, replay, err = reopen(d, "two")
	check(t, err)
	if replay.Unclean || replay.Torn != 0 {
		t.Fatalf("the start after the next: %+v", replay)
	}
	same(t, entries(t, replay), append(first, next))
	check(t, j.Close(false))
}
