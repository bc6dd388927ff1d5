package cluster

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opencluster/oclocks/internal/cli/output"
	"github.com/opencluster/oclocks/subjects"
)

// Source is asked for what is shown; *client.Client is one.
type Source interface {
	Cluster(ctx context.Context, req *subjects.Request) (*subjects.Cluster, error)
}

// Frame is what one look gave.
type Frame struct {
	At    time.Time
	Asked bool // for certain buckets, instead of those that are not as they should be
	subjects.Cluster
}

// Buckets are those that are asked for; none for those that are not as they should be.
type Buckets struct {
	Asked       bool
	All         bool
	First, Last uint32
}

// Gather looks at the cluster. More buckets than fit into one answer are asked for one after the other.
func Gather(ctx context.Context, source Source, b Buckets, now func() time.Time) (*Frame, error) {
	if !b.Asked && !b.All {
		c, err := source.Cluster(ctx, &subjects.Request{})
		if err != nil {
			return nil, fmt.Errorf("look at the cluster: %w", err)
		}
		return &Frame{At: now(), Cluster: *c}, nil
	}
	if b.All {
		c, err := source.Cluster(ctx, &subjects.Request{})
		if err != nil {
			return nil, fmt.Errorf("look at the cluster: %w", err)
		}
		b.First, b.Last = 0, max(c.Total, 1)-1
	}
	f := &Frame{Asked: true}
	for from := b.First; ; from += subjects.MaxBucketRange {
		to := min(b.Last, from+subjects.MaxBucketRange-1)
		c, err := source.Cluster(ctx, &subjects.Request{Has: subjects.HasBuckets, FirstBucket: from, LastBucket: to})
		if err != nil {
			return nil, fmt.Errorf("look at the cluster: %w", err)
		}
		buckets := slices.Concat(f.Cluster.Buckets, c.Buckets)
		f.At, f.Cluster = now(), *c
		f.Cluster.Buckets = buckets
		if to >= b.Last {
			return f, nil
		}
	}
}

// ParseBuckets reads all, a number, or a range such as 16-31; "" asks for none.
func ParseBuckets(text string) (b Buckets, err error) {
	switch text {
	case "":
		return Buckets{}, nil
	case "all":
		return Buckets{All: true}, nil
	}
	from, to, isRange := strings.Cut(text, "-")
	if !isRange {
		to = from
	}
	first, err1 := strconv.ParseUint(from, 10, 16)
	last, err2 := strconv.ParseUint(to, 10, 16)
	if err1 != nil || err2 != nil || first > last {
		return Buckets{}, fmt.Errorf("%q are no buckets: expected all, or for example 7 or 16-31", text)
	}
	return Buckets{Asked: true, First: uint32(first), Last: uint32(last)}, nil
}

// Taken is when it was looked.
func (f *Frame) Taken() time.Time { return f.At }

// Print prints it as one line of JSON.
func (f *Frame) Print(p *output.Printer) error { return p.Body(&f.Cluster) }
