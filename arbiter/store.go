package arbiter

import (
	"crypto/rand"
	"encoding/binary"

	"github.com/opencluster/oclocks/arbiter/core"
)

// Store keeps what an arbiter must know again after a restart. There are two: OpenStore and NewMemoryStore. One arbiter uses
// it at a time.
type Store interface {
	// RaftID is random, made with the store, and never that of another one: whoever lost its store is somebody else.
	RaftID() uint64
	// Empty says that nothing is known yet of any group.
	Empty() bool
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
func (s *memoryStore) Empty() bool    { return s.start.Snapshot == nil && s.start.HardState == nil }
func (s *memoryStore) Close() error   { return nil }

func (s *memoryStore) begin() (uint64, core.Start, error) {
	s.life++
	return s.life, s.start, nil
}

func (s *memoryStore) save(p *core.Persist) error {
	s.start.Merge(p)
	return nil
}
