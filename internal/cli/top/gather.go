package top

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// maxScan is how many locks with a queue a frame looks at, at the most.
const maxScan = 10_000

// Source is asked for what is shown; *client.Client is one.
type Source interface {
	Info(ctx context.Context) (*subjects.Info, error)
	List(ctx context.Context, req *subjects.Request) (*subjects.Page, error)
}

// Frame is what one look at the broker gave.
type Frame struct {
	At      time.Time
	Info    subjects.Info
	Locks   []subjects.Record // those with a queue first, the longest queue on top; then others that are held
	Queued  int               // how many locks have a queue
	Waiting int               // how many wait in them
	More    bool              // there are more with a queue than maxScan, which were not looked at
}

// Gather looks at the locks that begin with prefix: at all with a queue, up to a limit, and at some that are only held, so
// that there are rows of them if there are so many.
func Gather(ctx context.Context, source Source, prefix string, rows int, now func() time.Time) (*Frame, error) {
	info, err := source.Info(ctx)
	if err != nil {
		return nil, fmt.Errorf("look at the broker: %w", err)
	}
	f := &Frame{Info: *info}
	f.Locks, f.More, err = scan(ctx, source, subjects.Request{Prefix: prefix, State: subjects.Waited}, maxScan)
	if err != nil {
		return nil, err
	}
	f.At, f.Queued = now(), len(f.Locks)
	for i := range f.Locks {
		f.Waiting += f.Locks[i].Waiting
	}
	slices.SortFunc(f.Locks, byQueue)
	if rows <= f.Queued {
		return f, nil
	}
	held, _, err := scan(ctx, source, subjects.Request{Prefix: prefix, State: subjects.Held}, rows)
	if err != nil {
		return nil, err
	}
	// Who has a queue is in there again, and may have got it only now: it is shown at the next frame.
	held = slices.DeleteFunc(held, func(r subjects.Record) bool { return r.Waiting > 0 })
	slices.SortFunc(held, byQueue)
	f.Locks = append(f.Locks, held...)
	return f, nil
}

// scan follows the pages of a list until there is no more, or enough; more says that something was left.
func scan(ctx context.Context, source Source, req subjects.Request, enough int) (found []subjects.Record, more bool, err error) {
	req.Limit = uint32(min(max(enough, 1), subjects.MaxListLimit))
	for {
		page, err := source.List(ctx, &req)
		if err != nil {
			return nil, false, fmt.Errorf("list the locks: %w", err)
		}
		found = append(found, page.Locks...)
		if page.Next == "" || len(found) >= enough {
			return found, page.Next != "", nil
		}
		req.After = page.Next
	}
}

// byQueue puts the longest queue first, then what has been held the longest, then the lowest name.
func byQueue(a, b subjects.Record) int {
	return cmp.Or(cmp.Compare(b.Waiting, a.Waiting), cmp.Compare(since(&a), since(&b)), cmp.Compare(a.Name, b.Name))
}

// since is when the first holder got the lock, in Unix milliseconds; of a free one 0.
func since(r *subjects.Record) int64 {
	if len(r.Holders) == 0 {
		return 0
	}
	return r.Holders[0].Since
}
