package bucket

import (
	"slices"
	"strings"

	"github.com/google/btree"
)

// ordered walks the names of a zone in the order of their bytes. It is fed lazily: a new lock goes to an unsorted list,
// which is merged into a tree when it is long or when somebody wants to walk, so that a lock which is released soon never
// pays for a place in the tree.
type ordered struct {
	locks *slab[lock]
	tree  *btree.BTreeG[uint32]
	fresh []uint32 // locks that are not in the tree, each knows its place in here
	pivot string   // the name that number 0 stands for in comparisons
}

const (
	freshMax   = 1024
	treeDegree = 32
	inTree     = 1<<32 - 1 // in lock.place
)

func (o *ordered) name(id uint32) string {
	if id == 0 {
		return o.pivot
	}
	return o.locks.at(id).name
}

func (o *ordered) add(id uint32) {
	if len(o.fresh) >= freshMax {
		o.merge()
	}
	o.locks.at(id).place = uint32(len(o.fresh))
	o.fresh = append(o.fresh, id)
}

// remove must be called while the lock still has its name.
func (o *ordered) remove(id uint32) {
	place := o.locks.at(id).place
	if place == inTree {
		o.tree.Delete(id)
		return
	}
	last := len(o.fresh) - 1
	moved := o.fresh[last]
	o.fresh[place] = moved
	o.locks.at(moved).place = place
	o.fresh = o.fresh[:last]
}

func (o *ordered) merge() {
	if o.tree == nil {
		o.tree = btree.NewG(treeDegree, func(a, b uint32) bool { return o.name(a) < o.name(b) })
	}
	slices.SortFunc(o.fresh, func(a, b uint32) int { return strings.Compare(o.name(a), o.name(b)) })
	for _, id := range o.fresh {
		o.tree.ReplaceOrInsert(id)
		o.locks.at(id).place = inTree
	}
	o.fresh = o.fresh[:0]
}

// ascend calls visit for each lock from the first name on that is not before from, until visit returns false.
func (o *ordered) ascend(from string, visit func(id uint32) bool) {
	o.merge()
	o.pivot = from
	o.tree.AscendGreaterOrEqual(0, visit)
	o.pivot = ""
}
