package chaos

import (
	"context"
	"sync"
	"time"
)

// crowd makes the workers that share a client, and so a zone. In the history each is a client.
func (r *role) crowd(rec *recorder) (workers []*actor) {
	d := &drum{}
	for i := range r.Crowd {
		a := r.actor(rec, actors+i)
		a.drum = d
		if workers = append(workers, a); i > 0 {
			a.zone = workers[0].zone
		}
	}
	return workers
}

// beat is how long the workers of a crowd pause, from when the first of them does.
const beat = 30 * time.Millisecond

// drum has the workers of a crowd go on at the same moment, so that their requests leave together.
type drum struct {
	mu   sync.Mutex
	next chan struct{} // closed at the next beat; nil while nobody waits for it
}

// wait waits for the next beat, or until ctx ends. It is so far off if nobody waits for it yet.
func (d *drum) wait(ctx context.Context, off time.Duration) {
	d.mu.Lock()
	if d.next == nil {
		d.next = make(chan struct{})
		time.AfterFunc(off, d.strike)
	}
	next := d.next
	d.mu.Unlock()
	select {
	case <-next:
	case <-ctx.Done():
	}
}

func (d *drum) strike() {
	d.mu.Lock()
	defer d.mu.Unlock()
	close(d.next)
	d.next = nil
}
