package core

import (
	"encoding/binary"
	"fmt"
)

// parts puts frames together that came in parts: one at a time from each sender, in order. A part that is lost or overtaken
// loses its frame, which Raft survives.
type parts struct {
	whole map[uint64]*whole
	seq   uint64 // of the last frame that this node sent in parts
}

type whole struct {
	seq, total uint64
	buf        []byte
}

const maxSenders = 16 // of which frames are put together at once

func appendNum(b []byte, v uint64) []byte { return binary.AppendUvarint(b, v) }

func compare(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// post adds a frame to what is sent, in parts if it is long.
func (n *Node) post(to uint64, buf []byte) {
	if len(buf) <= MaxFrame {
		n.out.Messages = append(n.out.Messages, Message{To: to, Frame: buf})
		return
	}
	n.frames.seq++
	for at := 0; at < len(buf); at += MaxFrame {
		p := part{
			Seq: n.frames.seq, Total: uint64(len(buf)), Offset: uint64(at), Data: buf[at:min(at+MaxFrame, len(buf))],
		}
		n.out.Messages = append(n.out.Messages, Message{To: to, Frame: encodePart(n.cfg.ID, to, &p)})
	}
}

// unpack reads a frame, or adds a part to what is there; nil: there are parts to come.
func (n *Node) unpack(from uint64, buf []byte) (*frame, error) {
	f, err := n.addressed(from, buf)
	if err != nil || f.kind != kindPart {
		return f, err
	}
	whole, err := n.frames.add(from, &f.part)
	if err != nil || whole == nil {
		return nil, err
	}
	f, err = n.addressed(from, whole)
	if err == nil && f.kind == kindPart {
		return nil, fmt.Errorf("%w: a part in a part", ErrFrame)
	}
	return f, err
}

func (n *Node) addressed(from uint64, buf []byte) (*frame, error) {
	f, err := decode(buf)
	if err != nil {
		return nil, err
	}
	if f.from != from || f.to != n.cfg.ID || from == n.cfg.ID {
		return nil, fmt.Errorf("%w: from %x to %x came from %x to %x", ErrFrame, f.from, f.to, from, n.cfg.ID)
	}
	return &f, nil
}

// add gives the frame once its last part is there.
func (p *parts) add(from uint64, in *part) ([]byte, error) {
	w := p.whole[from]
	if in.Offset == 0 {
		if w == nil && len(p.whole) >= maxSenders {
			return nil, fmt.Errorf("%w: parts from more than %d nodes at once", ErrFrame, maxSenders)
		}
		w = &whole{seq: in.Seq, total: in.Total}
		p.whole[from] = w
	}
	if w == nil || w.seq != in.Seq || w.total != in.Total || uint64(len(w.buf)) != in.Offset {
		delete(p.whole, from)
		return nil, fmt.Errorf("%w: a part of frame %d at %d without the one before", ErrFrame, in.Seq, in.Offset)
	}
	w.buf = append(w.buf, in.Data...)
	if uint64(len(w.buf)) < w.total {
		return nil, nil
	}
	delete(p.whole, from)
	return w.buf, nil
}
