package flow

import "github.com/opencluster/oclocks/bucket/chain"

// Feed has what was applied here and is not told to the copies yet. They are told each change in its order, and first the
// views that it brought, so that nothing is done under a lease before the views that it presumes are installed.
//
// Changes that have piled up are told as one: the copies then miss views between the first and the last one, as after a
// snapshot. Before Open, which means until the copies are there, only the last one is kept.
type Feed[S any] struct {
	views   func(S) []chain.View // of a state, by bucket; the zero View where there is none
	limit   int
	open    bool
	pending []Applied[S]
	known   []chain.View // as the copies know them
	at      uint64       // the newest change here
}

// Applied is a state after a change.
type Applied[S any] struct {
	Change uint64
	State  S
}

// NewFeed keeps as many changes apart as limit says.
func NewFeed[S any](limit int, views func(S) []chain.View) *Feed[S] {
	return &Feed[S]{views: views, limit: limit}
}

// Push takes a state. An older one than the newest is ignored.
func (f *Feed[S]) Push(change uint64, state S) {
	if change <= f.at {
		return
	}
	f.at = change
	if n := len(f.pending); n > 0 && (!f.open || n >= f.limit) {
		f.pending = f.pending[:n-1]
	}
	f.pending = append(f.pending, Applied[S]{change, state})
}

// Open says that the copies are there.
func (f *Feed[S]) Open() { f.open = true }

// Next gives what the copies are to be told next: first these views, by bucket, then the change.
func (f *Feed[S]) Next() (views []Ask, next Applied[S], ok bool) {
	if !f.open || len(f.pending) == 0 {
		return nil, next, false
	}
	next = f.pending[0]
	f.pending[0] = Applied[S]{}
	f.pending = f.pending[1:]
	now := f.views(next.State)
	if len(now) == len(f.known) && (len(now) == 0 || &now[0] == &f.known[0]) {
		return nil, next, true // the very same ones
	}
	for i, v := range now {
		if i >= len(f.known) && v.Epoch > 0 || i < len(f.known) && v.Epoch > f.known[i].Epoch {
			views = append(views, Ask{uint32(i), v})
		}
	}
	f.known = now
	return views, next, true
}
