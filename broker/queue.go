package broker

import (
	"slices"
	"sync"

	"github.com/opencluster/oclocks/subjects"
)

// maxPending is how many requests of one zone may wait for one shard; one more is refused with 503 overloaded.
const maxPending = 64 << 10

// maxPendingBytes bounds the size of their bodies likewise.
const maxPendingBytes = 64 << 20

// queue is what waits for one shard. Zones take turns, so that a flood in one zone delays another zone's request by at
// most one request of each zone; within a zone, first come is first served.
type queue struct {
	mu    sync.Mutex
	lanes map[*zone]*lane
	turns []*lane       // lanes that have tasks, in the order of their turns
	wake  chan struct{} // holds one token while there may be work
	still bool          // its shard does not get on, and takes no requests
}

// lane is the FIFO of one zone (or of the daemon itself, zone nil), a ring buffer that shrinks when it runs empty.
type lane struct {
	ring  []*task
	head  int
	size  int
	bytes int
	asked int // requests that the tasks are
}

func newQueue() *queue {
	return &queue{lanes: make(map[*zone]*lane), wake: make(chan struct{}, 1)}
}

// rest begins or ends that no requests are taken.
func (q *queue) rest(still bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.still = still
}

// put queues a task; false if the lane of its zone is full or the shard takes none, and then the task is not queued.
// The daemon's own tasks (zone nil) have no limit: there is a bounded number of them by construction.
func (q *queue) put(t *task) bool {
	q.mu.Lock()
	l := q.lanes[t.zone]
	if l == nil {
		l = &lane{}
		q.lanes[t.zone] = l
	}
	if t.zone != nil && (q.still || l.asked >= maxPending || l.bytes+t.size > maxPendingBytes) {
		q.mu.Unlock()
		return false
	}
	l.push(t)
	if l.size == 1 {
		q.turns = append(q.turns, l)
	}
	q.mu.Unlock()
	q.kick()
	return true
}

// giveBack puts tasks that were taken before in front of everything that their zones have, in their order and whatever the
// limits say. It returns those whose zones have gone meanwhile.
func (q *queue) giveBack(tasks []*task) (gone []*task) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := len(tasks) - 1; i >= 0; i-- {
		l := q.lanes[tasks[i].zone]
		if l == nil {
			gone = append(gone, tasks[i])
			continue
		}
		l.pushFront(tasks[i])
		if l.size == 1 {
			q.turns = append(q.turns, l)
		}
	}
	return gone
}

// kick wakes the shard even if nothing was queued.
func (q *queue) kick() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

// takeOwn appends what the daemon itself has to do, up to half of the limit: leases, views and the other nodes' changes do
// not wait for a turn behind hundreds of zones.
func (q *queue) takeOwn(dst []*task, limit int) []*task {
	l := q.lanes[nil]
	if l == nil || l.size == 0 {
		return dst
	}
	for n := min(l.size, limit/2); n > 0; n-- {
		dst = append(dst, l.pop())
	}
	if l.size == 0 {
		q.turns = slices.DeleteFunc(q.turns, func(turn *lane) bool { return turn == l })
	}
	return dst
}

// take appends up to limit tasks to dst, the daemon's own first, then one from each zone in turn. A list is the last of its
// batch, since it looks at so much: other zones have their turn before the next one.
func (q *queue) take(dst []*task, limit int) []*task {
	q.mu.Lock()
	defer q.mu.Unlock()
	before := len(dst)
	dst = q.takeOwn(dst, limit)
	limit -= len(dst) - before
	for limit > 0 && len(q.turns) > 0 {
		l := q.turns[0]
		t := l.pop()
		dst = append(dst, t)
		limit -= t.weight()
		if t.kind == taskEach && t.req.Op == subjects.OpList {
			limit = 0
		}
		if len(q.turns) == 1 {
			if l.size == 0 {
				q.turns = q.turns[:0]
			}
			continue
		}
		copy(q.turns, q.turns[1:])
		if l.size > 0 {
			q.turns[len(q.turns)-1] = l
		} else {
			q.turns = q.turns[:len(q.turns)-1]
		}
	}
	return dst
}

// drop forgets the lane of a zone that is gone. Its tasks have been taken by then or are answered by nobody; a node that has passed one
// on is told so.
func (q *queue) drop(z *zone) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := q.lanes[z]
	delete(q.lanes, z)
	for l != nil && l.size > 0 {
		l.pop().done()
	}
	for i, turn := range q.turns {
		if turn == l {
			q.turns = append(q.turns[:i], q.turns[i+1:]...)
			return
		}
	}
}

func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.turns) == 0
}

func (l *lane) push(t *task) {
	l.grow()
	l.ring[(l.head+l.size)%len(l.ring)] = t
	l.size++
	l.bytes += t.size
	l.asked += t.weight()
}

func (l *lane) pushFront(t *task) {
	l.grow()
	l.head = (l.head + len(l.ring) - 1) % len(l.ring)
	l.ring[l.head] = t
	l.size++
	l.bytes += t.size
	l.asked += t.weight()
}

// grow makes room for one more.
func (l *lane) grow() {
	if l.size < len(l.ring) {
		return
	}
	grown := make([]*task, max(16, 2*len(l.ring)))
	for i := range l.size {
		grown[i] = l.ring[(l.head+i)%len(l.ring)]
	}
	l.ring, l.head = grown, 0
}

func (l *lane) pop() *task {
	t := l.ring[l.head]
	l.ring[l.head] = nil
	l.head = (l.head + 1) % len(l.ring)
	l.size--
	l.bytes -= t.size
	l.asked -= t.weight()
	if l.size == 0 && len(l.ring) > 1024 {
		l.ring, l.head = nil, 0
	}
	return t
}
