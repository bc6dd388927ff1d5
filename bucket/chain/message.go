package chain

import "fmt"

// Kind says what a Message is.
type Kind uint8

// The kinds. "Down" is towards the tail, "up" towards the primary.
const (
	Append   Kind = 1 + iota // down: changes, and how far they are confirmed
	Ack                      // up: how far the sender and everybody below it has what the primary has
	Ask                      // down: say Hello, I do not know where to begin
	Hello                    // up: where my history ends; begin there
	Chunk                    // down: a part of a snapshot
	ChunkAck                 // up: how much of a snapshot has come
	Join                     // to the primary, then to whom it names: may I stand behind you?
	Redirect                 // answer to Join: ask At
	Welcome                  // answer to Join: yes
	Leave                    // to the primary: I want to be dropped
	Stale                    // answer to anything of an older epoch: there is a newer one
	kinds                    // how many there are, and one
)

var kindNames = [kinds]string{
	"none", "append", "ack", "ask", "hello", "chunk", "chunk-ack", "join", "redirect", "welcome", "leave", "stale",
}

func (k Kind) String() string {
	if k < kinds {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", uint8(k))
}

// Progress is how far a member has, verified and in its journal, what the primary has.
type Progress struct {
	Member Member
	Seq    uint64
}

// Message goes from one copy to another. Which fields mean something depends on Kind; the others are zero.
type Message struct {
	Kind   Kind
	Bucket uint32
	Epoch  uint64 // of the sender's view
	From   Member
	To     Member

	// Append.
	Prev      Point    // the change before the first of Changes
	Changes   []Change // may be none
	Confirmed uint64   // the primary had answered up to here, at the least; Ack: the sender knows of this much
	Head      uint64   // the primary had proposed up to here, at the least
	Floor     bool     // the sender has nothing before Prev

	// Append: the number of the Ack that asked for these changes once more. Ack: the number of this request for the change
	// Doubt, which came damaged or differs. 0: neither.
	Again uint64
	Doubt uint64 // Ack: a sequence number, 0 if Again is

	// Ack. The first one is the sender's own, then comes everybody below it.
	Progress []Progress
	Resend   bool // something is missing: begin again after Progress[0]

	// Hello and Join.
	Last   Point // end of the sender's history
	Anchor Point // it knows that its history is confirmed up to here
	Fresh  bool  // its history is not worth a comparison: it wants a snapshot

	// Chunk and ChunkAck.
	Base   Point  // the state that the snapshot is of
	Size   uint64 // of the whole snapshot, bytes
	Sum    uint64 // xxhash64 of the whole snapshot
	Offset uint64 // Chunk: of Data in the snapshot; ChunkAck: everything before this has come
	Data   []byte

	At Member // Redirect
}

// String is one line for transcripts and logs.
func (m *Message) String() string {
	head := fmt.Sprintf("%v>%v e%d %v", m.From, m.To, m.Epoch, m.Kind)
	switch m.Kind {
	case Append:
		s := fmt.Sprintf("%s after %v", head, m.Prev)
		if n := len(m.Changes); n > 0 {
			s += fmt.Sprintf(" +%d to %v", n, m.Changes[n-1].point())
		}
		s += fmt.Sprintf(" confirmed %d head %d", m.Confirmed, m.Head)
		if m.Floor {
			s += " floor"
		}
		if m.Again > 0 {
			s += fmt.Sprintf(" again#%d", m.Again)
		}
		return s
	case Ack:
		for _, p := range m.Progress {
			head += fmt.Sprintf(" %v:%d", p.Member, p.Seq)
		}
		head += fmt.Sprintf(" confirmed %d", m.Confirmed)
		if m.Resend {
			head += " resend"
		}
		if m.Again > 0 {
			head += fmt.Sprintf(" again#%d from %d", m.Again, m.Doubt)
		}
		return head
	case Hello, Join:
		s := fmt.Sprintf("%s last %v anchor %v", head, m.Last, m.Anchor)
		if m.Fresh {
			s += " fresh"
		}
		return s
	case Chunk:
		return fmt.Sprintf("%s of %v: %d bytes at %d of %d", head, m.Base, len(m.Data), m.Offset, m.Size)
	case ChunkAck:
		return fmt.Sprintf("%s of %v: %d of %d", head, m.Base, m.Offset, m.Size)
	case Redirect:
		return fmt.Sprintf("%s to %v", head, m.At)
	}
	return head
}
