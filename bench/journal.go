package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/opencluster/oclocks/internal/journal"
)

// changeSize is about what a grant or a release takes, in bytes.
const changeSize = 160

// measureJournal measures Append in the temporary directory: with one change in a batch and with many, without waiting
// for the disk and with.
func measureJournal(ctx context.Context) ([]table, error) {
	t := table{Title: fmt.Sprintf("The journal, changes of %d bytes", changeSize), Columns: []string{"a batch", "changes"}}
	for _, sync := range []struct {
		name string
		mode journal.Sync
	}{{"background", journal.Background}, {"always", journal.Always}} {
		for _, batch := range []int{1, 64} {
			one, err := appendBatches(ctx, sync.mode, batch)
			if err != nil {
				return nil, fmt.Errorf("sync %s, batches of %d: %w", sync.name, batch, err)
			}
			t.add("sync "+sync.name+", batches of "+strconv.Itoa(batch), micros(one), rate(float64(batch)/one.Seconds()))
		}
	}
	t.note("In %s.", os.TempDir())
	return []table{t}, nil
}

// appendBatches gives the time of one Append.
func appendBatches(ctx context.Context, sync journal.Sync, batch int) (one time.Duration, err error) {
	dir, err := os.MkdirTemp("", "oclocks-bench")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	j, _, err := journal.Open(dir+"/journal", journal.Options{Sync: sync})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, j.Close(true)) }()
	records := make([]journal.Record, batch)
	payload := make([]byte, changeSize)
	seq := uint64(0)
	done := 0
	begin := time.Now()
	for ; time.Since(begin) < timed && ctx.Err() == nil; done++ {
		for i := range records {
			seq++
			records[i] = journal.Record{Bucket: 1, Seq: seq, Kind: journal.Change, Payload: payload}
		}
		if err := j.Append(records); err != nil {
			return 0, err
		}
	}
	return time.Since(begin) / time.Duration(max(done, 1)), ctx.Err()
}
