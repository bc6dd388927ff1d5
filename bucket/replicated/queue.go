package replicated

import (
	"time"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

// item is an effect that waits for the change seq, or a mark.
type item struct {
	seq    uint64
	effect bucket.Effect
	mark   any
	kept   bool // it is of a change, so that whoever has the change can tell it
}

// queue has what waits for confirmation, in order.
type queue struct {
	items   []item
	head    int
	touched []string // zones of the changes since the last round
}

func (q *queue) put(seq uint64, e *bucket.Effect, kept bool) {
	q.items = append(q.items, item{seq: seq, effect: *e, kept: kept})
}

func (q *queue) wait(seq uint64, mark any) { q.items = append(q.items, item{seq: seq, mark: mark}) }

func (q *queue) empty() bool { return q.head == len(q.items) }

// release gives what waits for changes up to seq.
func (q *queue) release(number uint32, seq uint64, out *Output) {
	for q.head < len(q.items) && q.items[q.head].seq <= seq {
		i := &q.items[q.head]
		if i.mark != nil {
			out.Marks = append(out.Marks, Released{Mark: i.mark})
		} else {
			out.Released = append(out.Released, Effect{Bucket: number, Effect: i.effect})
		}
		*i = item{}
		q.head++
	}
	q.shrink()
}

// shrink begins the array anew when it is empty, and moves it when half of it is.
func (q *queue) shrink() {
	switch {
	case q.empty():
		q.items, q.head = q.items[:0], 0
		if cap(q.items) > 4096 {
			q.items = nil
		}
	case q.head > 1024 && q.head > len(q.items)/2:
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
}

// drop gives up everything: marks come back as lost. What tells of a change is remembered: whoever takes over tells it if
// he has the change, and it may be this copy again. Who asked for something else is told to ask again.
func (q *queue) drop(now int64, number uint32, r *recent, out *Output) {
	for i := range q.items[q.head:] {
		switch i := &q.items[q.head+i]; {
		case i.mark != nil:
			out.Marks = append(out.Marks, Released{Mark: i.mark, Lost: true})
		case i.kept:
			r.put(now, i.seq, &i.effect)
		case i.effect.Kind == bucket.Reply:
			i.effect.Body = &subjects.Refusal{Code: 503, Reason: subjects.ReasonUnavailable, RetryAfter: 100 * time.Millisecond,
				Message: "this bucket has another primary now; ask again"}
			out.Released = append(out.Released, Effect{Bucket: number, Effect: i.effect})
		}
	}
	q.items, q.head = nil, 0
}

const (
	recentKeep = 5_000_000_000 // nanoseconds: longer than it takes until a primary is replaced that died together with the leader
	recentMost = 1024
)

// recent remembers the replies of the changes that were applied last on a secondary.
type recent struct {
	items []recentItem
	head  int
}

type recentItem struct {
	at int64
	item
}

func (r *recent) put(now int64, seq uint64, e *bucket.Effect) {
	if e.Kind == bucket.NotifyZone {
		return // told at most once more is once too often; the lock events promise nothing
	}
	if len(r.items)-r.head >= recentMost {
		r.pop()
	}
	r.items = append(r.items, recentItem{at: now, item: item{seq: seq, effect: *e, kept: true}})
	if r.head > recentMost {
		n := copy(r.items, r.items[r.head:])
		clear(r.items[n:])
		r.items, r.head = r.items[:n], 0
	}
}

func (r *recent) pop() {
	r.items[r.head] = recentItem{}
	r.head++
}

// forget drops what is too old.
func (r *recent) forget(now int64) {
	for r.head < len(r.items) && r.items[r.head].at < now-recentKeep {
		r.pop()
	}
	if r.head == len(r.items) {
		r.items, r.head = r.items[:0], 0
	}
}

// all puts everything into the queue of what waits for confirmation.
func (r *recent) all(q *queue) {
	for _, i := range r.items[r.head:] {
		q.items = append(q.items, i.item)
	}
}
