package chain

import (
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// outgoing is a snapshot on its way to the copy after this one.
type outgoing struct {
	point Point
	data  []byte
	sum   uint64
	taken bool   // data is there; otherwise the table is still to be asked
	begun bool   // a part was sent, be it an empty one
	next  uint64 // offset of the next part
	acked uint64 // everything before has come
}

// stage is a snapshot that is coming in.
type stage struct {
	point     Point
	size, sum uint64
	data      []byte
}

// copyTo begins to send a snapshot. A copy that others may rely on takes it only if it is of more than it has (onChunk);
// otherwise it has to leave the chain first, so that nobody relies on what it would throw away.
func (r *Replica) copyTo(l *link) {
	l.hello = nil
	l.state = copying
	l.movedAt = r.now
	if l.snap == nil {
		l.snap = &outgoing{}
	}
	l.snap.again()
}

// Snapshot gives the table's state, after Output.NeedSnapshot asked for it: the table has exactly the changes up to seq.
// The bytes must not be written to afterwards. Errors: ErrSnapshot, ErrTooLarge.
func (r *Replica) Snapshot(seq uint64, data []byte) error {
	l := r.down
	if l == nil || l.state != copying || l.snap.taken {
		return ErrSnapshot
	}
	point, ok := r.log.at(seq)
	if !ok || seq != r.delivered {
		return fmt.Errorf("%w: of change %d, the table has %d", ErrSnapshot, seq, r.delivered)
	}
	if int64(len(data)) > r.lim.Snapshot {
		r.alert(l.peer, seq, "a snapshot of %d bytes is larger than the limit, %d", len(data), r.lim.Snapshot)
		l.state, r.dirty = refused, true
		return fmt.Errorf("%w: a snapshot of %d bytes, the limit is %d", ErrTooLarge, len(data), r.lim.Snapshot)
	}
	r.dirty = true
	*l.snap = outgoing{point: point, data: data, sum: xxhash.Sum64(data), taken: true}
	return nil
}

// sendChunks sends as many parts as may be on their way. A primary's table is ahead of what is confirmed: its snapshot
// waits until nobody can take it back.
func (r *Replica) sendChunks(l *link) {
	s := l.snap
	if !s.taken {
		r.out.NeedSnapshot = true
		return
	}
	if verified, ok := r.verified(); !ok || s.point.Seq > min(verified, r.confirmed) {
		return
	}
	size := uint64(len(s.data))
	for !s.begun || s.next < size {
		if s.next-s.acked >= uint64(r.lim.Chunk)*uint64(r.lim.Chunks) {
			return
		}
		end := min(size, s.next+uint64(r.lim.Chunk))
		r.send(l.peer, Message{Kind: Chunk, Base: s.point, Size: size, Sum: s.sum, Offset: s.next, Data: s.data[s.next:end]})
		s.next, s.begun = end, true
		l.sentAt = r.now
	}
}

// again sends the parts that were not confirmed.
func (s *outgoing) again() { s.next, s.begun = s.acked, false }

// onChunkAck lets more parts out, and after the last one begins with the changes that came since.
func (r *Replica) onChunkAck(m *Message) {
	l := r.down
	if l == nil || m.From != l.peer || l.state != copying || !l.snap.taken || m.Base != l.snap.point || m.Sum != l.snap.sum {
		return
	}
	l.heardAt = r.now
	s := l.snap
	size := uint64(len(s.data))
	switch {
	case m.Offset > size:
		return
	case m.Offset < s.acked:
		s.acked, s.next = m.Offset, m.Offset // it has begun anew
	case m.Offset > s.acked:
		s.acked, s.next = m.Offset, max(s.next, m.Offset)
		l.movedAt = r.now
	}
	if m.Offset == size && m.Size == size {
		l.stream(s.point.Seq, false, r.now)
	}
}

// onChunk collects a snapshot. Nothing of what this copy has is touched before all of it has come and is sound.
func (r *Replica) onChunk(m *Message) {
	if m.From != r.up.peer || r.up.peer == (Member{}) {
		return
	}
	r.up.heardAt = r.now
	switch {
	case r.up.matched && m.Base.Seq <= r.up.verified: // a duplicate of what was restored
		r.chunkAck(m, m.Size)
		return
	case m.Base.Seq > r.log.last().Seq: // all that was answered and is here is in it, so nobody relies on more than it has
	case r.view.Counts(r.state.Self) && r.up.matched:
		r.up.hello = true // what it answers was said before we had anything
		return
	case r.view.Counts(r.state.Self) || r.shown && !r.up.matched:
		r.retire("it would have to throw away what others may rely on")
		return
	}
	if int64(m.Size) > r.lim.Snapshot {
		r.alert(r.state.Self, m.Base.Seq, "a snapshot of %d bytes is larger than the limit, %d", m.Size, r.lim.Snapshot)
		return
	}
	r.up.hello = false
	r.up.helloAt = r.now
	s := r.up.stage
	if s == nil || s.point != m.Base || s.size != m.Size || s.sum != m.Sum {
		s = &stage{point: m.Base, size: m.Size, sum: m.Sum}
		r.up.stage = s
	}
	if have := uint64(len(s.data)); m.Offset == have && have+uint64(len(m.Data)) <= s.size {
		s.data = append(s.data, m.Data...)
	}
	have := uint64(len(s.data))
	if have < s.size {
		r.chunkAck(m, have)
		return
	}
	r.up.stage = nil
	if xxhash.Sum64(s.data) != s.sum {
		r.alert(r.state.Self, s.point.Seq, "a snapshot from %v came damaged", m.From)
		r.chunkAck(m, 0)
		return
	}
	r.restore(Snapshot{Point: s.point, Data: s.data})
	r.chunkAck(m, m.Size)
}

func (r *Replica) chunkAck(m *Message, have uint64) {
	r.send(m.From, Message{Kind: ChunkAck, Base: m.Base, Size: m.Size, Sum: m.Sum, Offset: have})
}

// restore makes a snapshot this copy's whole history. Its state was confirmed, and the one who sent it has compared its
// own history with the primary's in this epoch.
func (r *Replica) restore(s Snapshot) {
	r.log.reset(s.Point)
	r.unstored = 0
	r.out.Restore, r.out.Truncate = &s, false
	r.confirmed, r.delivered = s.Point.Seq, s.Point.Seq
	r.up.fresh, r.up.hello = false, false
	r.up.matched, r.up.verified, r.up.ack = true, s.Point.Seq, true
	r.forget()
}

// forget begins the link to the next copy anew, because what it was sent is not our history any more.
func (r *Replica) forget() {
	if r.down != nil {
		joins := r.down.joins
		r.down = newLink(r.down.peer, r.now)
		r.down.joins = joins
	}
}
