package journal

import "testing"

// A journal that is told to sync always while it runs has what it appended from then on on the disk.
func TestSyncAlwaysFromNowOn(t *testing.T) {
	d := newDisk()
	j, _ := open(t, options(d))
	synced := func() bool {
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.synced == j.written
	}
	check(t, j.Append([]Record{{Bucket: 1, Seq: 1, Kind: Change, Payload: []byte("a")}}))
	if synced() {
		t.Fatal("it is on the disk without having been told to")
	}
	j.SyncAlways()
	check(t, j.Append([]Record{{Bucket: 1, Seq: 2, Kind: Change, Payload: []byte("b")}}))
	if !synced() {
		t.Error("it is not on the disk")
	}
	check(t, j.Close(false))
}
