package journal

import (
	"fmt"
	"path/filepath"
	"testing"
)

// payload is about the size of the change of a grant.
const payload = 150

// BenchmarkAppend appends batches of changes, with fsync in the background and in each call.
func BenchmarkAppend(b *testing.B) {
	for _, mode := range []Sync{Background, Always} {
		for _, size := range []int{1, 64, 256} {
			name := map[Sync]string{Background: "background", Always: "always"}[mode]
			b.Run(fmt.Sprintf("%s/%d", name, size), func(b *testing.B) { benchmarkAppend(b, mode, size) })
		}
	}
}

func benchmarkAppend(b *testing.B, mode Sync, size int) {
	j, _, err := Open(filepath.Join(b.TempDir(), "journal"), Options{Sync: mode})
	check(b, err)
	batch := make([]Record, size)
	for i := range batch {
		batch[i] = Record{Bucket: uint32(i % 64), Kind: Change, Payload: make([]byte, payload)}
	}
	var seqs [64]uint64
	b.SetBytes(int64(size * (payload + headSize)))
	b.ReportAllocs()
	for b.Loop() {
		for i := range batch {
			seqs[i%64]++
			batch[i].Seq = seqs[i%64]
		}
		if err := j.Append(batch); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)*float64(size)/b.Elapsed().Seconds(), "changes/s")
	check(b, j.Close(false))
}

// BenchmarkReplay opens a journal of 100,000 changes and reads them all.
func BenchmarkReplay(b *testing.B) {
	top := filepath.Join(b.TempDir(), "journal")
	j, _, err := Open(top, Options{})
	check(b, err)
	batch := make([]Record, 1000)
	for n := range 100 {
		for i := range batch {
			batch[i] = Record{Bucket: 1, Seq: uint64(n*1000 + i + 1), Kind: Change, Payload: make([]byte, payload)}
		}
		check(b, j.Append(batch))
	}
	check(b, j.Close(true))
	b.SetBytes(100_000 * (payload + headSize))
	for b.Loop() {
		j, replay, err := Open(top, Options{})
		check(b, err)
		n := 0
		check(b, replay.Each(func(uint32, uint64, Kind, []byte) error { n++; return nil }))
		if n != 100_000 {
			b.Fatalf("%d changes", n)
		}
		check(b, j.Close(true))
	}
}
