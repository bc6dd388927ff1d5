package bucket

import (
	"slices"

	"github.com/google/btree"
)

// ordered walks the names of a zone in the order of their bytes.
//
// Names are read as little as possible, since with millions of locks each is a miss of the caches. The names are dealt out
// to leaves of up to leafMax, each of which has those from its own low name up to the next leaf's. Only the low names are
// in a tree; within a leaf there is no order until somebody walks it, or until it is full and becomes two. A lock knows its
// place in its leaf, so taking it out compares nothing.
//
// A new lock goes to an unsorted list first, which is dealt out when it is long or when somebody wants to walk: a lock that
// is released soon never pays for a place in a leaf.
type ordered struct {
	locks  *locks
	fresh  []uint32 // locks that are in no leaf
	leaves slab[leaf]
	lows   *btree.BTreeG[low]
}

// leaf has the locks whose names are not before low and before the next leaf's.
type leaf struct {
	low    string
	used   int    // places that were ever given out
	live   int    // of which have a lock
	hole   uint32 // a place that has none, the next one is in it; noHole ends them
	sorted bool   // the locks are in the order of their names
	ids    [leafMax]uint32
}

// low is where a leaf begins, or for a search the name of a lock.
type low struct {
	name string
	leaf uint32
	lock uint32
}

func (o *ordered) less(a, b low) bool {
	switch {
	case a.lock != 0:
		return o.locks.against(o.locks.at(a.lock), b.name) < 0
	case b.lock != 0:
		return o.locks.against(o.locks.at(b.lock), a.name) > 0
	}
	return a.name < b.name
}

const (
	freshMax   = 512
	leafBits   = 7
	leafMax    = 1 << leafBits
	leafKeep   = leafMax / 4 // a leaf that has less is given up
	treeDegree = 32

	isHole = 1 << 31 // beyond every lock's number
	noHole = 1<<32 - 1

	// lock.place is a place in fresh, or this bit, the number of a leaf (as many as fit into 10 GB) and a place in it.
	inLeaf = 1 << 31
)

func (o *ordered) add(id uint32) {
	if len(o.fresh) >= freshMax {
		o.deal()
	}
	o.locks.at(id).place = uint32(len(o.fresh))
	o.fresh = append(o.fresh, id)
}

// remove must be called while the lock still has its name.
func (o *ordered) remove(id uint32) {
	place := o.locks.at(id).place
	if place&inLeaf == 0 {
		last := len(o.fresh) - 1
		moved := o.fresh[last]
		o.fresh[place] = moved
		o.locks.at(moved).place = place
		o.fresh = o.fresh[:last]
		return
	}
	number := place &^ inLeaf >> leafBits
	l := o.leaves.at(number)
	at := place & (leafMax - 1)
	l.ids[at], l.hole = l.hole, isHole|at
	l.live--
	switch {
	case l.low == "": // the first leaf is there as long as there is one
	case l.live < leafKeep:
		o.giveUp(number)
	}
}

// giveUp removes a leaf. What is left in it is dealt out again.
func (o *ordered) giveUp(number uint32) {
	l := o.leaves.at(number)
	o.lows.Delete(low{name: l.low})
	for _, id := range l.ids[:l.used] {
		if id < isHole {
			o.locks.at(id).place = uint32(len(o.fresh))
			o.fresh = append(o.fresh, id)
		}
	}
	o.leaves.release(number)
	if len(o.fresh) >= freshMax {
		o.deal()
	}
}

// deal gives every fresh lock a place in a leaf.
func (o *ordered) deal() {
	if o.lows == nil {
		o.lows = btree.NewG(treeDegree, o.less)
		o.leaves.bits = 1
	}
	if o.lows.Len() == 0 {
		number, first := o.leaves.take()
		first.sorted, first.hole = true, noHole
		o.lows.ReplaceOrInsert(low{leaf: number})
	}
	for _, id := range o.fresh {
		o.place(id)
	}
	o.fresh = o.fresh[:0]
}

// place puts a lock into its leaf.
func (o *ordered) place(id uint32) {
	number := o.leafOf(low{lock: id})
	if o.leaves.at(number).live == leafMax {
		number = o.makeRoom(number, id)
	}
	l := o.leaves.at(number)
	at := l.used
	if l.hole != noHole {
		at = int(l.hole &^ isHole)
		l.hole = l.ids[at]
		l.sorted = false
	} else {
		l.sorted = l.used == 0 || l.sorted && o.follows(l, id)
		l.used++
	}
	o.put(number, at, id)
	l.live++
}

// follows says whether a lock's name is after that of the one at the end of a leaf without holes.
func (o *ordered) follows(l *leaf, id uint32) bool {
	return o.locks.compare(o.locks.at(l.ids[l.used-1]), o.locks.at(id)) < 0
}

// makeRoom finds a leaf for a lock whose own is full.
func (o *ordered) makeRoom(number, id uint32) uint32 {
	if l := o.leaves.at(number); l.sorted && o.follows(l, id) {
		return o.begin(o.locks.name(o.locks.at(id))) // names come in their order: this leaf stays full
	}
	if upper := o.halve(number); o.locks.against(o.locks.at(id), o.leaves.at(upper).low) >= 0 {
		return upper
	}
	return number
}

func (o *ordered) put(number uint32, at int, id uint32) {
	o.leaves.at(number).ids[at] = id
	o.locks.at(id).place = inLeaf | number<<leafBits | uint32(at)
}

// leafOf finds the leaf for a name.
func (o *ordered) leafOf(name low) (number uint32) {
	o.lows.DescendLessOrEqual(name, func(found low) bool {
		number = found.leaf
		return false
	})
	return number
}

// begin makes an empty leaf for the names from one on, up to the next leaf.
func (o *ordered) begin(name string) (number uint32) {
	number, l := o.leaves.take()
	l.low, l.sorted, l.hole = name, true, noHole
	o.lows.ReplaceOrInsert(low{name: name, leaf: number})
	return number
}

// sort puts the locks of a leaf in the order of their names, without holes.
func (o *ordered) sort(number uint32) {
	l := o.leaves.at(number)
	if l.sorted && l.hole == noHole {
		return
	}
	packed := l.ids[:0]
	for _, id := range l.ids[:l.used] {
		if id < isHole {
			packed = append(packed, id)
		}
	}
	if !l.sorted {
		slices.SortFunc(packed, func(a, b uint32) int { return o.locks.compare(o.locks.at(a), o.locks.at(b)) })
	}
	for i, id := range packed {
		o.put(number, i, id)
	}
	l.used, l.hole, l.sorted = len(packed), noHole, true
}

// halve makes two leaves of one and returns the upper one.
func (o *ordered) halve(number uint32) (upper uint32) {
	o.sort(number)
	l := o.leaves.at(number)
	half := l.used / 2
	upper = o.begin(o.locks.name(o.locks.at(l.ids[half])))
	u := o.leaves.at(upper)
	for i, id := range l.ids[half:l.used] {
		o.put(upper, i, id)
	}
	u.used, u.live = l.used-half, l.used-half
	l.used, l.live = half, half
	return upper
}

// ascend calls visit for each lock from the first name on that is not before from, until visit returns false.
func (o *ordered) ascend(from string, visit func(id uint32) bool) {
	o.deal()
	first := o.leafOf(low{name: from})
	o.lows.AscendGreaterOrEqual(low{name: o.leaves.at(first).low}, func(each low) bool {
		o.sort(each.leaf)
		l := o.leaves.at(each.leaf)
		ids := l.ids[:l.used]
		if each.leaf == first {
			at, _ := slices.BinarySearchFunc(ids, from, func(id uint32, from string) int {
				return o.locks.against(o.locks.at(id), from)
			})
			ids = ids[at:]
		}
		for _, id := range ids {
			if !visit(id) {
				return false
			}
		}
		return true
	})
}
