package arbiter

import (
	"errors"
	"path/filepath"
	"sync"
	"testing"

	"go.etcd.io/bbolt"
	pb "go.etcd.io/raft/v3/raftpb"

	"github.com/opencluster/oclocks/arbiter/core"
)

// failingStore fails from some time on.
type failingStore struct {
	Store
	mu  sync.Mutex
	err error
}

func (s *failingStore) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *failingStore) save(p *core.Persist) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return s.err
	}
	return s.Store.save(p)
}

func entries(term uint64, from, to uint64) []*pb.Entry {
	var list []*pb.Entry
	for i := from; i <= to; i++ {
		list = append(list, &pb.Entry{Index: new(i), Term: new(term)})
	}
	return list
}

// Both stores give back what Merge, the definition, would have.
func TestStoreGivesBackWhatWasSaved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control.db")
	disk, err := OpenStore(path)
	must(t, err)
	id := disk.RaftID()
	if !disk.Empty() || id == 0 {
		t.Fatalf("a new store: raft %d, empty %t", id, disk.Empty())
	}
	var want core.Start
	first := core.Found(id, []byte("fsm"))
	for i, p := range []*core.Persist{
		&first,
		{Entries: entries(1, 2, 9)},
		{Entries: entries(2, 6, 7), HardState: &pb.HardState{Term: new(uint64(2)), Vote: new(uint64(5)), Commit: new(uint64(3))}},
		{Compact: 3},
		{Compact: 1},
		{Entries: entries(3, 8, 30), Compact: 10},
		{Reset: true, Snapshot: &pb.Snapshot{Metadata: &pb.SnapshotMetadata{Index: new(uint64(40)), Term: new(uint64(3))}}},
		{Entries: entries(3, 41, 42)},
	} {
		must(t, disk.save(p))
		want.Merge(p)
		must(t, disk.Close())
		disk, err = OpenStore(path)
		must(t, err)
		life, got, err := disk.begin()
		must(t, err)
		if life != uint64(i+1) || disk.RaftID() != id || disk.Empty() {
			t.Fatalf("life %d, raft %d, empty %t", life, disk.RaftID(), disk.Empty())
		}
		if got.HardState.String() != want.HardState.String() || got.Snapshot.String() != want.Snapshot.String() {
			t.Fatalf("step %d: %v, want %v", i, got, want)
		}
		if len(got.Entries) != len(want.Entries) {
			t.Fatalf("step %d: %d entries, want %d", i, len(got.Entries), len(want.Entries))
		}
		for k, e := range got.Entries {
			if e.String() != want.Entries[k].String() {
				t.Fatalf("step %d: entry %v, want %v", i, e, want.Entries[k])
			}
		}
	}
	must(t, disk.Close())
}

// TestARenewedStoreIsAnotherOne: both stores, and the one on disk after a restart.
func TestARenewedStoreIsAnotherOne(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control.db")
	disk, err := OpenStore(path)
	must(t, err)
	memory, err := NewMemoryStore()
	must(t, err)
	for name, store := range map[string]Store{"disk": disk, "memory": memory} {
		if kept, err := store.Kept(); kept != nil || err != nil {
			t.Fatalf("%s: a new store keeps %q, %v", name, kept, err)
		}
		id := store.RaftID()
		first := core.Found(id, []byte("fsm"))
		must(t, store.save(&first))
		must(t, store.save(&core.Persist{Entries: entries(1, 2, 9)}))
		must(t, store.Keep([]byte("one")))
		must(t, store.Keep([]byte("two")))
		if kept, err := store.Kept(); string(kept) != "two" || err != nil {
			t.Fatalf("%s: keeps %q, %v", name, kept, err)
		}
		must(t, store.Renew())
		renewed := store.RaftID()
		if name == "disk" {
			must(t, store.Close())
			store, err = OpenStore(path)
			must(t, err)
		}
		if store.RaftID() == id || store.RaftID() != renewed || store.Empty() {
			t.Fatalf("%s: raft ID %d after %d, empty %t", name, store.RaftID(), id, store.Empty())
		}
		if kept, err := store.Kept(); kept != nil || err != nil {
			t.Fatalf("%s: a renewed store keeps %q, %v", name, kept, err)
		}
		if _, start, err := store.begin(); err != nil || start.HardState != nil || start.Snapshot != nil || len(start.Entries) > 0 {
			t.Fatalf("%s: a renewed store has %+v, %v", name, start, err)
		}
		if _, err := Start(Config{Store: store, FSM: &list{}, Found: true, Send: func(uint64, []byte) {}}); !errors.Is(err, ErrConfig) {
			t.Fatalf("%s: a renewed store founds a group: %v", name, err)
		}
		must(t, store.Close())
	}
}

// A damaged value, or another format, is noticed and nothing is started with it.
func TestStoreRefusesDamage(t *testing.T) {
	for name, damage := range map[string]func(tx *bbolt.Tx) error{
		"format":   func(tx *bbolt.Tx) error { return putNum(tx.Bucket(bucketMeta), keyFormat, 99) },
		"raft":     func(tx *bbolt.Tx) error { return tx.Bucket(bucketMeta).Delete(keyRaft) },
		"log":      func(tx *bbolt.Tx) error { return tx.DeleteBucket(bucketLog) },
		"entry":    func(tx *bbolt.Tx) error { return flip(tx.Bucket(bucketLog), indexKey(3)) },
		"gap":      func(tx *bbolt.Tx) error { return tx.Bucket(bucketLog).Delete(indexKey(3)) },
		"snapshot": func(tx *bbolt.Tx) error { return flip(tx.Bucket(bucketMeta), keySnapshot) },
		"state":    func(tx *bbolt.Tx) error { return flip(tx.Bucket(bucketMeta), keyHardState) },
		"commit": func(tx *bbolt.Tx) error {
			return putMessage(tx.Bucket(bucketMeta), keyHardState, &pb.HardState{Term: new(uint64(1)), Commit: new(uint64(77))})
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "control.db")
			store, err := OpenStore(path)
			must(t, err)
			first := core.Found(store.RaftID(), []byte("[]"))
			first.Entries = entries(1, 2, 5)
			must(t, store.save(&first))
			must(t, store.(*diskStore).db.Update(damage))
			must(t, store.Close())
			store, err = OpenStore(path)
			if err == nil {
				var a *Arbiter
				a, err = Start(Config{Store: store, FSM: &list{}, Send: func(uint64, []byte) {}})
				must(t, store.Close())
				if a != nil {
					a.Close()
				}
			}
			if !errors.Is(err, ErrStore) && !errors.Is(err, ErrConfig) {
				t.Fatalf("damage of the %s: %v", name, err)
			}
		})
	}
}

func flip(b *bbolt.Bucket, key []byte) error {
	v := append([]byte(nil), b.Get(key)...)
	v[len(v)-1] ^= 1
	return b.Put(key, v)
}
