package chain

// How the bytes of changes are kept. One by one they were some two of five of our allocations for a lock.
const (
	blockSize = 4 << 10 // bytes
	blockMost = 1 << 10 // what is longer has memory of its own
)

// blocks gives out memory for bytes that stay as they are once they are written: each part of a block is given out once and never taken
// back, and nothing can be appended to it, so no two histories' bytes touch. The log forgets changes in their order, so beside what
// it has it keeps one block that is nearly forgotten and one that is not full.
type blocks struct{ last []byte }

// room is memory for n bytes, with nothing in it.
func (b *blocks) room(n int) []byte {
	switch {
	case n == 0:
		return nil
	case n > blockMost:
		return make([]byte, 0, n)
	case n > cap(b.last)-len(b.last):
		b.last = make([]byte, 0, blockSize)
	}
	at := len(b.last)
	b.last = b.last[:at+n]
	return b.last[at:at:len(b.last)]
}
