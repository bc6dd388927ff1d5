package bucket

import (
	"math"
	"math/bits"
)

// wheel is a hierarchical timing wheel: it holds any number of timers and finds those that are due at a cost that does
// not grow with their number. A timer is a number of the caller's, its node is inside the caller's own record, and setting
// or stopping one is a change of links.
//
// Time goes in ticks of a millisecond. A timer comes up with the first tick that is not before the instant for which it
// is set: it may be up to a millisecond late and is never early.
//
// The wheel keeps no instants. It asks the caller for them, whenever it has to place a timer again; so an instant that
// moves later needs no call. One that moves earlier needs set.
//
// Level l has 64 slots of 64^l ticks. A timer is in the lowest level in which its tick and the current one have the same
// digits above; when time reaches a slot of a higher level, its timers move down.
type wheel struct {
	node func(t timer) *node // where the caller has the node of a timer
	at   func(t timer) int64 // the instant for which it is set, in nanoseconds; never: not at all

	tick  int64                 // the current tick
	used  [wheelLevels]uint64   // which slots of a level have timers
	slots [wheelSlots + 1]timer // the first timer of each slot; the last slot has those that are due
}

// timer names a timer: 0 is none.
type timer uint32

// node is a timer's place in a wheel: in the list of a slot. The zero node is in none.
type node struct {
	next timer    // 0 at the end
	prev timer    // of the first one: the last one
	slot uint16   // slot + 1
	own  [2]uint8 // the record's that the node is in; there is room here, and millions of holds
}

const (
	wheelBits   = 6
	wheelSpan   = 1 << wheelBits // slots of a level
	wheelLevels = 8              // 2^48 ticks are more than an int64 of nanoseconds has
	wheelSlots  = wheelLevels * wheelSpan
	slotDue     = wheelSlots

	tickLength = 1_000_000 // nanoseconds
	never      = math.MaxInt64
)

// set places a timer for its instant, wherever it was before.
func (w *wheel) set(t timer) {
	w.stop(t)
	if at := w.at(t); at != never {
		w.link(t, w.slotOf(at))
	}
}

// stop takes a timer out; it may be out already.
func (w *wheel) stop(t timer) {
	n := w.node(t)
	if n.slot == 0 {
		return
	}
	slot := int(n.slot - 1)
	first := w.slots[slot]
	switch {
	case first != t:
		w.node(n.prev).next = n.next
		if n.next != 0 {
			w.node(n.next).prev = n.prev
		} else {
			w.node(first).prev = n.prev
		}
	case n.next != 0:
		w.slots[slot] = n.next
		w.node(n.next).prev = n.prev
	default:
		w.slots[slot] = 0
		if slot != slotDue {
			w.used[slot/wheelSpan] &^= 1 << (slot % wheelSpan)
		}
	}
	n.next, n.prev, n.slot = 0, 0, 0
}

// link appends a timer that is in no slot to the list of one.
func (w *wheel) link(t timer, slot int) {
	n := w.node(t)
	n.slot = uint16(slot + 1)
	first := w.slots[slot]
	if first == 0 {
		w.slots[slot], n.prev = t, t
		if slot != slotDue {
			w.used[slot/wheelSpan] |= 1 << (slot % wheelSpan)
		}
		return
	}
	last := w.node(first).prev
	w.node(last).next, n.prev = t, last
	w.node(first).prev = t
}

// slotOf is where a timer for an instant belongs at the current tick.
func (w *wheel) slotOf(at int64) int {
	tick := at / tickLength
	if at%tickLength > 0 {
		tick++
	}
	if tick <= w.tick {
		return slotDue
	}
	level := (bits.Len64(uint64(tick^w.tick)) - 1) / wheelBits
	return level*wheelSpan + int(tick>>(wheelBits*level))&(wheelSpan-1)
}

// advance lets time pass up to an instant.
func (w *wheel) advance(now int64) {
	for {
		level, tick := w.soonest()
		if tick > now/tickLength {
			break
		}
		w.tick = tick
		w.open(level)
	}
	w.tick = max(w.tick, now/tickLength)
}

// open deals the timers of the first used slot of a level out to where they belong at the current tick.
func (w *wheel) open(level int) {
	slot := level*wheelSpan + bits.TrailingZeros64(w.used[level])
	for w.slots[slot] != 0 {
		w.set(w.slots[slot])
	}
}

// due takes the first timer out that is due, 0 if there is none.
func (w *wheel) due() timer {
	t := w.slots[slotDue]
	if t != 0 {
		w.stop(t)
	}
	return t
}

// next is the instant at which advance has something to do, never if no timer is set. It is not after the first timer's
// instant by more than a tick, and may be before it.
func (w *wheel) next() int64 {
	if w.slots[slotDue] != 0 {
		return w.tick * tickLength
	}
	if _, tick := w.soonest(); tick != never {
		return tick * tickLength
	}
	return never
}

// soonest finds the slot that time reaches next: its level and the tick at which it begins; never if all are empty.
func (w *wheel) soonest() (level int, tick int64) {
	for level, used := range w.used {
		if used != 0 {
			shift := wheelBits * level
			above := w.tick >> (shift + wheelBits) << (shift + wheelBits)
			return level, above | int64(bits.TrailingZeros64(used))<<shift
		}
	}
	return 0, never
}
