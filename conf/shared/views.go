package shared

import (
	"fmt"
	"maps"
	"slices"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/mutant"
)

func (t *turn) found(c *Found) error {
	switch {
	case t.next.Cluster != "":
		return fmt.Errorf("the cluster %s: %w", t.next.Cluster, ErrExists)
	case c.Buckets == 0 || c.Buckets > conf.MaxBuckets || c.Buckets&(c.Buckets-1) != 0:
		return fmt.Errorf("%w: %d buckets: expected a power of two from 1 to %d", ErrValue, c.Buckets, conf.MaxBuckets)
	case len(c.Zones) == 0:
		return fmt.Errorf("%w: no zone", ErrValue)
	}
	if err := checkText("cluster", c.Cluster, 1, conf.MaxNameLen); err != nil {
		return err
	}
	s, err := DefaultSettings().setAll(c.Settings)
	if err != nil {
		return err
	}
	t.next.Cluster, t.next.Settings = c.Cluster, s
	t.next.Views = make([]chain.View, c.Buckets)
	for _, z := range c.Zones {
		if _, ok := t.next.Zone(z.Name); ok {
			return fmt.Errorf("zone %s: %w", z.Name, ErrExists)
		}
		put := ZonePut{Zone: z}
		if k, ok := c.Keys[z.Name]; ok {
			put.Keys = &k
		}
		if err := t.putZone(&put); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(c.Keys) {
		if _, ok := t.next.Zone(name); !ok {
			return fmt.Errorf("keys of zone %s: zone %w", shorten(name), ErrNotFound)
		}
	}
	return nil
}

// lead ends the time of all leaders before.
func (t *turn) lead(term uint64) error {
	if term <= t.next.Term {
		return fmt.Errorf("%w: term %d, this is %d", ErrStale, term, t.next.Term)
	}
	t.next.Term = term
	return nil
}

// views commits what follows the views that there are.
func (t *turn) views(c *ViewChange) error {
	if c.Term != 0 && c.Term < t.next.Term {
		return fmt.Errorf("%w: the views were planned in term %d, this is %d", ErrStale, c.Term, t.next.Term)
	}
	list := c.Views
	for i := range list {
		b := &list[i]
		if b.Bucket >= t.next.Buckets() {
			return fmt.Errorf("bucket %d: %w: there are %d", b.Bucket, ErrNotFound, t.next.Buckets())
		}
		if err := b.View.Validate(); err != nil {
			return fmt.Errorf("%w: bucket %d: %w", ErrValue, b.Bucket, err)
		}
	}
	t.next.Views = slices.Clone(t.next.Views)
	for i := range list {
		b := &list[i]
		old := &t.next.Views[b.Bucket]
		follows := b.View.Epoch == old.Epoch+1 || b.View.Epoch == old.Epoch && mutant.On(mutant.ViewNotCompared)
		if !follows || !t.next.Lives(b.View.Primary()) {
			continue
		}
		t.swap(viewEntry(b.Bucket, old), viewEntry(b.Bucket, &b.View))
		*old = b.View
		t.res.Taken = append(t.res.Taken, b.Bucket)
	}
	return nil
}

func (t *turn) pin(c *Pin) error {
	n := t.next.Node(c.Number)
	switch {
	case c.Bucket >= t.next.Buckets():
		return fmt.Errorf("bucket %d: %w: there are %d", c.Bucket, ErrNotFound, t.next.Buckets())
	case n == nil:
		return fmt.Errorf("node %d: %w", c.Number, ErrNotFound)
	case n.Arbiter:
		return fmt.Errorf("%w: node %d is an arbiter and has no buckets", ErrValue, c.Number)
	}
	t.setPin(c.Bucket, c.Number)
	return nil
}

func (t *turn) unpin(bucket uint32) error {
	if t.next.Pins[bucket] == 0 {
		return fmt.Errorf("bucket %d is not pinned: %w", bucket, ErrNotFound)
	}
	t.setPin(bucket, 0)
	return nil
}

// setPin pins a bucket, or unpins it with number 0.
func (t *turn) setPin(bucket uint32, number uint64) {
	pins := maps.Clone(t.next.Pins)
	if pins == nil {
		pins = map[uint32]uint64{}
	}
	if old := pins[bucket]; old != 0 {
		t.swap(pinEntry(bucket, old), 0)
		delete(pins, bucket)
	}
	if number != 0 {
		t.swap(0, pinEntry(bucket, number))
		pins[bucket] = number
	}
	t.next.Pins = pins
}

// ahead is by how much the first epoch of a half is ahead of the bucket's that is split. That one may go on to other epochs, and
// so to higher terms of its tokens, before it is split; the half begins with those terms, and its epochs must not be too low
// for them (replicated.Bucket). No bucket gets a thousand primaries that die before they have split it.
const ahead = 1024

// Half says whether a bucket may have been made by a doubling. One that was has been ahead of this from its first view on.
func (s *State) Half(bucket uint32) bool { return s.Views[bucket].Epoch > ahead }

// double gives every bucket b a second half, bucket b + as many as there are now: see doc.go.
func (t *turn) double(buckets uint32) error {
	now := t.next.Buckets()
	switch {
	case buckets != now:
		return fmt.Errorf("%w: there are %d buckets, not %d", ErrStale, now, buckets)
	case now > conf.MaxBuckets/2:
		return fmt.Errorf("%w: there are %d buckets, at most %d are possible", ErrTooMany, now, conf.MaxBuckets)
	}
	next := make([]chain.View, 2*now)
	copy(next, t.next.Views)
	for b, v := range t.next.Views {
		switch {
		case v.Epoch == 0:
			return fmt.Errorf("%w: bucket %d has no primary yet: try again later", ErrStale, b)
		case v.Recovery:
			return fmt.Errorf("%w: bucket %d is in recovery: try again later", ErrStale, b)
		}
		half := v.Clone()
		half.Epoch += ahead
		at := uint32(b) + now
		next[at] = half
		t.swap(0, viewEntry(at, &half))
	}
	t.next.Views = next
	return nil
}
