package arbiter

// Store keeps what an arbiter must know again after a restart. There are two: OpenStore and NewMemoryStore.
type Store interface {
	RaftID() uint64 // random, made with the store, never used by another one
	Life() uint64   // how often the store was opened, from 1: tells the proposals of this process from those of the one before
	Empty() bool    // no group was founded or joined with it
	Close() error
}

// OpenStore opens the store in a file, or makes it, with a new raft ID. Errors wrap ErrStore.
func OpenStore(path string) (Store, error) { return nil, ErrStore }

// NewMemoryStore makes a store that is lost with the process; so is its raft ID.
func NewMemoryStore() Store { return nil }
