package control

import "sync"

// bell wakes everybody who waits for something to change.
type bell struct {
	mu sync.Mutex
	ch chan struct{} // nil: nobody waits
}

// wait gives a channel that is closed at the next ring. Look at the condition after the call and before waiting.
func (b *bell) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}
