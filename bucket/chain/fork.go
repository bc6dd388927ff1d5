package chain

import "fmt"

// Fork gives the beginning of the chain that splits off this one when the number of buckets is doubled. The table decides
// by a change of its own, number seq, that from there on a part of its locks belongs to the other bucket; every copy forks
// right after it delivered that change, and gives the new chain's table the other part of its locks as of then.
//
// The new chain has the same members and views of its own, whose epochs may be lower than this chain's are by then; so it
// begins in no epoch, at sequence number 0, with a hash made of its bucket's number and of the hash of that change: all
// copies that forked from the same history begin at the same point, and no others match. A copy of the in-sync set that has
// the change but has not delivered it yet has the new chain's state too, since one follows from the other; it forks when it
// delivers, also by a takeover. The new chain must not answer before the change is confirmed: so a copy forks only after
// Confirmed has reached seq. A copy that got a snapshot from after seq does not fork: it joins the new chain like any
// other node, with an incarnation that it did not have in it before.
//
// ErrFork comes back if seq is not confirmed, not delivered, or so long ago that it is not in memory any more.
func (r *Replica) Fork(bucket uint32, seq uint64) (Start, error) {
	at, ok := r.log.at(seq)
	if !ok || r.delivered < seq || r.confirmed < seq || r.stopped != "" {
		return Start{}, fmt.Errorf("%w: at change %d, delivered %d, confirmed %d", ErrFork, seq, r.delivered, r.confirmed)
	}
	base := Point{Hash: chainHash(at.Hash, at.Epoch, uint64(bucket), []byte("oclocks fork"))}
	return Start{State: State{Self: r.state.Self}, Base: base}, nil
}
