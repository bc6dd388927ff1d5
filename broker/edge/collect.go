package edge

import (
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/subjects"
)

// Collect is one request that concerns all buckets. In each round every bucket that has not answered yet is asked, at the
// node that is its primary then, and nowhere else. What comes after its round does not count, so nothing counts twice. When
// the number of buckets is doubled meanwhile it begins anew, because locks have moved then.
//
// A round is: Begin, ask those nodes that Primaries names about what is Missing, Take what they say. After it Whole says
// whether all have answered.
type Collect struct {
	Limit int // records on a page

	missing  BucketSet // buckets that have not answered
	of       int       // so many
	page     PageMerge
	released int
}

// Begin begins a round, in a cluster of so many buckets.
func (c *Collect) Begin(buckets int) {
	if buckets != c.of {
		c.of, c.missing, c.page, c.released = buckets, AllBuckets(buckets), PageMerge{Limit: c.Limit}, 0
	}
}

// Missing are the buckets that have not answered. It must not be changed.
func (c *Collect) Missing() BucketSet { return c.missing }

// Take takes in what a node said that was asked in this round about the buckets in wanted. A refusal is that of the whole request.
func (c *Collect) Take(p *Part, wanted BucketSet) *subjects.Refusal {
	if p.Refusal != nil {
		return p.Refusal
	}
	if p.Buckets != c.of || !p.Covered.Within(wanted) {
		return nil // not an answer to what was asked
	}
	if p.Page != nil {
		if refusal := c.page.AddPage(p.Page); refusal != nil {
			return nil // no page of a node of this version: as if it had not answered
		}
	}
	c.missing.Remove(p.Covered)
	c.released += p.Released
	return nil
}

// Whole says whether every bucket has answered, if there are still so many.
func (c *Collect) Whole(buckets int) bool { return c.of == buckets && c.missing.Count() == 0 }

// Released is how many holds a session-close has released.
func (c *Collect) Released() int { return c.released }

// Page is the page of a list. It is not cut to the size of a message: see Fit.
func (c *Collect) Page() *subjects.Page { return c.page.Page() }

// Primaries says which node is to be asked about which of the wanted buckets: their primaries by views, which are by bucket.
// Those that nobody can be asked about now are missing: gone says which nodes are known not to be there.
func Primaries(views []chain.View, wanted BucketSet, gone func(node uint64) bool) map[uint64]BucketSet {
	nodes := make(map[uint64]BucketSet)
	for number := range views {
		v := &views[number]
		if v.Epoch == 0 || !wanted.Has(uint32(number)) {
			continue
		}
		node := v.Primary().Node
		if gone(node) {
			continue // its successor is being found
		}
		if nodes[node] == nil {
			nodes[node] = NewBucketSet(len(views))
		}
		nodes[node].Add(uint32(number))
	}
	return nodes
}
