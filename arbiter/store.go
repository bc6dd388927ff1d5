package arbiter

import (
	"crypto/rand"
	"encoding/binary"
	"slices"

	"github.com/opencluster/oclocks/arbiter/core"
)

// Store keeps what an arbiter must know again after a restart. There are two: OpenStore and NewMemoryStore. One arbiter uses
// it at a time.
type Store interface {
	// RaftID is random, made with the store, and never that of another one: whoever lost its store is somebody else.
	RaftID() uint64
	// Empty says that nothing is known yet of any group. A renewed store is not empty: there is a group somewhere.
	Empty() bool
	// Keep stores some bytes of the caller's in place of those before; when it returns, a crash does not lose them. Kept gives
	// them back, nil if there are none. Errors wrap ErrStore.
	Keep(value []byte) error
	Kept() ([]byte, error)
	// Renew makes it another store: with another raft ID, without anything that it had, what Keep has stored too. All of that
	// or, with an error that wraps ErrStore, nothing. No arbiter may use it at that time.
	Renew() error
	// Close frees it. Close the arbiter first.
	Close() error

	// begin counts a start of an arbiter, from 1, and gives what is stored.
	begin() (life uint64, start core.Start, err error)
	// save stores all of it or nothing. When it returns, a crash of the machine does not lose it (a memory store is lost with
	// the process, raft ID and all).
	save(p *core.Persist) error
}

// newRaftID draws one. The highest bit is left free: Raft has numbers up there that mean something else.
func newRaftID() (uint64, error) {
	var b [8]byte
	for {
		if _, err := rand.Read(b[:]); err != nil {
			return 0, err
		}
		if id := binary.LittleEndian.Uint64(b[:]) >> 1; id != 0 {
			return id, nil
		}
	}
}

type memoryStore struct {
	id, life uint64
	start    core.Start
	kept     []byte
	renewed  bool
}

// NewMemoryStore makes a store that is lost with the process. Errors wrap ErrStore: there is no randomness to be had.
func NewMemoryStore() (Store, error) {
	id, err := newRaftID()
	if err != nil {
		return nil, storeError("draw a raft ID", err)
	}
	return &memoryStore{id: id}, nil
}

func (s *memoryStore) RaftID() uint64 { return s.id }
func (s *memoryStore) Empty() bool {
	return s.start.Snapshot == nil && s.start.HardState == nil && !s.renewed
}
func (s *memoryStore) Close() error { return nil }

func (s *memoryStore) Keep(value []byte) error {
	s.kept = slices.Clone(value)
	return nil
}

func (s *memoryStore) Kept() ([]byte, error) { return slices.Clone(s.kept), nil }

func (s *memoryStore) Renew() error {
	id, err := newRaftID()
	if err != nil {
		return storeError("draw a raft ID", err)
	}
	*s = memoryStore{id: id, life: s.life, renewed: true}
	return nil
}

func (s *memoryStore) begin() (uint64, core.Start, error) {
	s.life++
	return s.life, s.start, nil
}

func (s *memoryStore) save(p *core.Persist) error {
	s.start.Merge(p)
	return nil
}
