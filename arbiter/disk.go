package arbiter

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
	"go.etcd.io/bbolt"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"

	"github.com/opencluster/oclocks/arbiter/core"
)

// storeFormat is raised when a file of this program cannot be read by an older one any more.
const storeFormat = 1

// The buckets of the file, and the keys in meta. Every value begins with the xxhash64 of the rest. The keys of the log are
// indexes, 8 bytes, big endian.
var (
	bucketMeta = []byte("meta")
	bucketLog  = []byte("log")

	keyFormat    = []byte("format")
	keyRaft      = []byte("raft")
	keyLife      = []byte("life")
	keyHardState = []byte("hardstate")
	keySnapshot  = []byte("snapshot")
	keyKept      = []byte("kept")
	keyRenewed   = []byte("renewed")
)

type diskStore struct {
	db   *bbolt.DB
	id   uint64
	void bool
}

// OpenStore opens the store in a file, or makes it, with a new raft ID. Its folder must exist. Errors wrap ErrStore: another
// process has it open, it is of another format, it is damaged.
func OpenStore(path string) (Store, error) {
	_, statErr := os.Stat(path)
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, FreelistType: bbolt.FreelistMapType, NoStatistics: true})
	if err != nil {
		return nil, storeError("open "+path, err)
	}
	s := &diskStore{db: db}
	err = db.Update(s.prepare)
	if err == nil && errors.Is(statErr, os.ErrNotExist) {
		err = syncFolder(filepath.Dir(path))
	}
	if err != nil {
		return nil, errors.Join(storeError("open "+path, err), db.Close())
	}
	return s, nil
}

// syncFolder makes sure that the file itself is there after a crash.
func syncFolder(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

func storeError(what string, err error) error { return fmt.Errorf("%w: %s: %w", ErrStore, what, err) }

// prepare makes what a new file needs, and checks what an old one has.
func (s *diskStore) prepare(tx *bbolt.Tx) error {
	meta := tx.Bucket(bucketMeta)
	if meta == nil {
		id, err := newRaftID()
		if err != nil {
			return err
		}
		if meta, err = tx.CreateBucket(bucketMeta); err != nil {
			return err
		}
		if _, err = tx.CreateBucket(bucketLog); err != nil {
			return err
		}
		err = errors.Join(putNum(meta, keyFormat, storeFormat), putNum(meta, keyRaft, id), putNum(meta, keyLife, 0))
		if err != nil {
			return err
		}
	}
	format, err := getNum(meta, keyFormat)
	if err != nil {
		return err
	}
	if format != storeFormat {
		return fmt.Errorf("format %d, this program knows %d", format, storeFormat)
	}
	if s.id, err = getNum(meta, keyRaft); err != nil {
		return err
	}
	if tx.Bucket(bucketLog) == nil {
		return errors.New("there is no log")
	}
	s.void = meta.Get(keyHardState) == nil && meta.Get(keySnapshot) == nil && meta.Get(keyRenewed) == nil
	return nil
}

func (s *diskStore) RaftID() uint64 { return s.id }
func (s *diskStore) Empty() bool    { return s.void }

func (s *diskStore) Close() error {
	if err := s.db.Close(); err != nil {
		return storeError("close", err)
	}
	return nil
}

func (s *diskStore) Keep(value []byte) error {
	if err := s.db.Update(func(tx *bbolt.Tx) error { return put(tx.Bucket(bucketMeta), keyKept, value) }); err != nil {
		return storeError("write", err)
	}
	return nil
}

func (s *diskStore) Kept() (value []byte, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		if meta.Get(keyKept) == nil {
			return nil
		}
		v, err := get(meta, keyKept)
		value = slices.Clone(v) // the file's memory ends with the transaction
		return err
	})
	if err != nil {
		return nil, storeError("read", err)
	}
	return value, nil
}

func (s *diskStore) Renew() error {
	id, err := newRaftID()
	if err != nil {
		return storeError("draw a raft ID", err)
	}
	err = s.db.Update(func(tx *bbolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		for _, key := range [][]byte{keyHardState, keySnapshot, keyKept} {
			if err := meta.Delete(key); err != nil {
				return err
			}
		}
		if err := errors.Join(putNum(meta, keyRaft, id), putNum(meta, keyRenewed, 1)); err != nil {
			return err
		}
		return saveLog(tx, &core.Persist{Reset: true})
	})
	if err != nil {
		return storeError("write", err)
	}
	s.id, s.void = id, false
	return nil
}

func (s *diskStore) begin() (life uint64, start core.Start, err error) {
	err = s.db.Update(func(tx *bbolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		if life, err = getNum(meta, keyLife); err != nil {
			return err
		}
		life++
		if err := putNum(meta, keyLife, life); err != nil {
			return err
		}
		start, err = load(tx)
		return err
	})
	if err != nil {
		return 0, core.Start{}, storeError("read", err)
	}
	return life, start, nil
}

func load(tx *bbolt.Tx) (start core.Start, err error) {
	meta := tx.Bucket(bucketMeta)
	if meta.Get(keyHardState) != nil {
		start.HardState = &pb.HardState{}
		if err := getMessage(meta, keyHardState, start.HardState); err != nil {
			return start, err
		}
	}
	if meta.Get(keySnapshot) != nil {
		start.Snapshot = &pb.Snapshot{}
		if err := getMessage(meta, keySnapshot, start.Snapshot); err != nil {
			return start, err
		}
	}
	log := tx.Bucket(bucketLog)
	err = log.ForEach(func(key, _ []byte) error {
		e := &pb.Entry{}
		if err := getMessage(log, key, e); err != nil {
			return err
		}
		if len(key) != 8 || binary.BigEndian.Uint64(key) != e.GetIndex() {
			return fmt.Errorf("entry %d is at %x", e.GetIndex(), key)
		}
		start.Entries = append(start.Entries, e)
		return nil
	})
	return start, err
}

func (s *diskStore) save(p *core.Persist) error {
	err := s.db.Update(func(tx *bbolt.Tx) error {
		meta := tx.Bucket(bucketMeta)
		if p.HardState != nil {
			if err := putMessage(meta, keyHardState, p.HardState); err != nil {
				return err
			}
		}
		if p.Snapshot != nil {
			if err := putMessage(meta, keySnapshot, p.Snapshot); err != nil {
				return err
			}
		}
		return saveLog(tx, p)
	})
	if err != nil {
		return storeError("write", err)
	}
	s.void = false
	return nil
}

func saveLog(tx *bbolt.Tx, p *core.Persist) error {
	if p.Reset {
		if err := tx.DeleteBucket(bucketLog); err != nil {
			return err
		}
		if _, err := tx.CreateBucket(bucketLog); err != nil {
			return err
		}
	}
	log := tx.Bucket(bucketLog)
	if len(p.Entries) > 0 {
		if err := deleteFrom(log, p.Entries[0].GetIndex()); err != nil {
			return err
		}
	}
	for _, e := range p.Entries {
		if err := putMessage(log, indexKey(e.GetIndex()), e); err != nil {
			return err
		}
	}
	return deleteUpTo(log, p.Compact)
}

// deleteFrom removes the entries at an index and above.
func deleteFrom(log *bbolt.Bucket, index uint64) error {
	var keys [][]byte
	c := log.Cursor()
	for k, _ := c.Seek(indexKey(index)); k != nil; k, _ = c.Next() {
		keys = append(keys, k)
	}
	return deleteKeys(log, keys)
}

// deleteUpTo removes the entries up to an index.
func deleteUpTo(log *bbolt.Bucket, index uint64) error {
	var keys [][]byte
	c := log.Cursor()
	for k, _ := c.First(); k != nil && binary.BigEndian.Uint64(k) <= index; k, _ = c.Next() {
		keys = append(keys, k)
	}
	return deleteKeys(log, keys)
}

// deleteKeys removes them afterwards: a cursor skips keys when the one that it is at is removed.
func deleteKeys(log *bbolt.Bucket, keys [][]byte) error {
	for _, k := range keys {
		if err := log.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

func indexKey(index uint64) []byte { return binary.BigEndian.AppendUint64(nil, index) }

func put(b *bbolt.Bucket, key, value []byte) error {
	return b.Put(key, append(binary.LittleEndian.AppendUint64(make([]byte, 0, 8+len(value)), xxhash.Sum64(value)), value...))
}

func get(b *bbolt.Bucket, key []byte) ([]byte, error) {
	v := b.Get(key)
	if len(v) < 8 || binary.LittleEndian.Uint64(v) != xxhash.Sum64(v[8:]) {
		return nil, fmt.Errorf("the value of %q is damaged", key)
	}
	return v[8:], nil
}

func putNum(b *bbolt.Bucket, key []byte, v uint64) error {
	return put(b, key, binary.LittleEndian.AppendUint64(nil, v))
}

func getNum(b *bbolt.Bucket, key []byte) (uint64, error) {
	v, err := get(b, key)
	if err == nil && len(v) != 8 {
		err = fmt.Errorf("the value of %q has %d bytes", key, len(v))
	}
	if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(v), nil
}

func putMessage(b *bbolt.Bucket, key []byte, m proto.Message) error {
	v, err := proto.Marshal(m)
	if err != nil {
		return err
	}
	return put(b, key, v)
}

func getMessage(b *bbolt.Bucket, key []byte, m proto.Message) error {
	v, err := get(b, key)
	if err != nil {
		return err
	}
	if err := proto.Unmarshal(v, m); err != nil { // it copies what it keeps
		return fmt.Errorf("the value of %q: %w", key, err)
	}
	return nil
}
