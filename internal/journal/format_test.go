package journal

import (
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/cespare/xxhash/v2"
)

// seeded is xxhash64 with a seed, as the drawing in doc.go means it.
func seeded(seed uint64, b []byte) uint64 {
	d := xxhash.NewWithSeed(seed)
	_, _ = d.Write(b) // never fails
	return d.Sum64()
}

// le joins numbers, little endian, each as wide as its type, and bytes.
func le(parts ...any) (b []byte) {
	for _, p := range parts {
		switch p := p.(type) {
		case byte:
			b = append(b, p)
		case uint16:
			b = binary.LittleEndian.AppendUint16(b, p)
		case uint32:
			b = binary.LittleEndian.AppendUint32(b, p)
		case uint64:
			b = binary.LittleEndian.AppendUint64(b, p)
		case string:
			b = append(b, p...)
		default:
			panic(fmt.Sprintf("%T", p))
		}
	}
	return b
}

// TestFormat writes a segment by the drawing in doc.go alone and compares it with what the journal wrote.
func TestFormat(t *testing.T) {
	d := newDisk()
	j, _ := open(t, options(d))
	check(t, j.Append(records([]entry{{7, 1, Change, "first"}, {0xfffffffe, 1 << 40, Snapshot, ""}})))
	check(t, j.Sync())
	check(t, j.Append(records([]entry{{7, 2, Change, "second"}})))
	check(t, j.Close(true))
	got := d.files["/j/journal-00000001.log"].data

	seed := binary.LittleEndian.Uint64(got[24:])
	want := le("oclocksJ", uint32(1), uint32(0), uint64(1), seed, xxhash.Sum64String("one"))
	sum := xxhash.Sum64(want)
	want = le(string(want), sum)
	add := func(bucket uint32, seq uint64, kind, last byte, part uint16, payload string) {
		rest := le(uint32(len(payload)), bucket, seq, kind, last, part)
		check := uint32(seeded(seed^uint64(len(want)), rest))
		body := le(check, string(rest), payload)
		sum = seeded(sum, body)
		want = le(string(want), sum, string(body))
	}
	add(0, 0, 3, 0, 0, "") // link
	add(7, 1, 1, 0, 0, "first")
	add(0xfffffffe, 1<<40, 2, 1, 0, "")
	synced := uint64(len(want))
	add(0, synced, 4, 0, 0, "")
	add(7, 2, 1, 0, 0, "second")
	synced = uint64(len(want))
	add(0, synced, 4, 0, 0, "")
	add(0, 0, 5, 0, 0, "") // clean
	if string(got) != string(want) {
		t.Fatalf("got\n%x\nwant\n%x", got, want)
	}

	j, _ = open(t, options(d))
	check(t, j.StartCompaction())
	check(t, j.Append(records([]entry{{7, 2, Snapshot, "7"}, {0xfffffffe, 1 << 40, Snapshot, ""}})))
	compacted(t, j)
	last := d.files["/j/journal-00000003.log"].data
	if link := last[headerSize+20 : headerSize+28]; string(link) != string(le(sum)) {
		t.Errorf("the link is %x, not the sum of the last record", link)
	}
	base := last[len(last)-headSize:]
	if base[28] != 6 || binary.LittleEndian.Uint64(base[20:]) != 3 {
		t.Errorf("no base mark at the end of %x", last)
	}
}
