package core

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cespare/xxhash/v2"
	pb "go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// A frame:
//
//	format 1 byte, kind 1 byte, from 8 bytes, to 8 bytes (raft IDs), body, 8 bytes: xxhash64 of everything before.
//
// Fixed numbers are little endian, all others shortest varints. There is one encoding of each frame, Raft's own messages
// inside of it excepted (protobuf allows several).
const (
	frameFormat = 1
	frameHead   = 18
	frameSum    = 8
)

type kind uint8

const (
	kindRaft   kind = iota + 1 // (length, raftpb.Message) once or several times
	kindAsk                    // ask
	kindAnswer                 // answer
	kindPart                   // part
)

// ask is what a member asks the leader: when everything committed before now is applied, and, with Lease, for a lease.
type ask struct {
	ID     uint64 // of the asker; the answer repeats it
	Lease  bool
	Number uint64 // Lease: the node's number, from 1
	Change uint64 // Lease: change ID of the last command it has applied
	Digest uint64 // Lease: of its state at Change
	Note   []byte
}

// answer to an ask.
type answer struct {
	ID    uint64
	Index uint64 // of a ReadIndex begun after the ask arrived
	Lease uint64 // granted, nanoseconds; 0: none was asked for, or refused
	Live  uint64 // Lease: nodes that hold one
	Why   string // the refusal; empty: none
}

// part of a frame that is longer than MaxFrame.
type part struct {
	Seq    uint64 // of the frame, rising for each sender
	Total  uint64
	Offset uint64
	Data   []byte
}

type frame struct {
	from, to uint64
	kind     kind
	raft     []*pb.Message
	ask      ask
	answer   answer
	part     part
}

func seal(k kind, from, to uint64, body func([]byte) []byte) []byte {
	buf := append(make([]byte, 0, 128), frameFormat, byte(k))
	buf = binary.LittleEndian.AppendUint64(buf, from)
	buf = binary.LittleEndian.AppendUint64(buf, to)
	buf = body(buf)
	return binary.LittleEndian.AppendUint64(buf, xxhash.Sum64(buf))
}

func encodeAsk(from, to uint64, a *ask) []byte {
	return seal(kindAsk, from, to, func(b []byte) []byte {
		b = binary.AppendUvarint(b, a.ID)
		if !a.Lease {
			return append(b, 0)
		}
		b = append(b, 1)
		b = binary.AppendUvarint(b, a.Number)
		b = binary.AppendUvarint(b, a.Change)
		b = binary.LittleEndian.AppendUint64(b, a.Digest)
		return append(b, a.Note...)
	})
}

func encodeAnswer(from, to uint64, a *answer) []byte {
	return seal(kindAnswer, from, to, func(b []byte) []byte {
		b = binary.AppendUvarint(b, a.ID)
		b = binary.AppendUvarint(b, a.Index)
		b = binary.AppendUvarint(b, a.Lease)
		b = binary.AppendUvarint(b, a.Live)
		return append(b, a.Why...)
	})
}

func encodePart(from, to uint64, p *part) []byte {
	return seal(kindPart, from, to, func(b []byte) []byte {
		b = binary.AppendUvarint(b, p.Seq)
		b = binary.AppendUvarint(b, p.Total)
		b = binary.AppendUvarint(b, p.Offset)
		return append(b, p.Data...)
	})
}

// encodeRaft packs messages for one node.
func encodeRaft(from, to uint64, messages [][]byte) []byte {
	return seal(kindRaft, from, to, func(b []byte) []byte {
		for _, m := range messages {
			b = binary.AppendUvarint(b, uint64(len(m)))
			b = append(b, m...)
		}
		return b
	})
}

// decode reads a frame. Errors wrap ErrFrame. Byte slices of the result are parts of buf.
func decode(buf []byte) (frame, error) {
	f, err := decodeFrame(buf)
	if err != nil {
		return frame{}, fmt.Errorf("%w: %w", ErrFrame, err)
	}
	return f, nil
}

func decodeFrame(buf []byte) (frame, error) {
	end := len(buf) - frameSum
	switch {
	case end < frameHead:
		return frame{}, fmt.Errorf("%d bytes", len(buf))
	case binary.LittleEndian.Uint64(buf[end:]) != xxhash.Sum64(buf[:end]):
		return frame{}, errors.New("the sum is wrong")
	case buf[0] != frameFormat:
		return frame{}, fmt.Errorf("format %d", buf[0])
	}
	f := frame{kind: kind(buf[1]), from: binary.LittleEndian.Uint64(buf[2:]), to: binary.LittleEndian.Uint64(buf[10:])}
	r := reader{buf: buf[frameHead:end:end]}
	switch f.kind {
	case kindRaft:
		f.raft = r.messages()
	case kindAsk:
		f.ask = r.ask()
	case kindAnswer:
		f.answer = r.answer()
	case kindPart:
		f.part = r.part()
	default:
		return frame{}, fmt.Errorf("kind %d", f.kind)
	}
	if r.err != nil {
		return frame{}, r.err
	}
	return f, nil
}

// reader takes fields off a body; after an error everything is zero.
type reader struct {
	buf []byte
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
	r.buf = nil
}

func (r *reader) num() uint64 {
	v, n := binary.Uvarint(r.buf)
	if n <= 0 || n > 1 && r.buf[n-1] == 0 {
		r.fail("a number is malformed")
		return 0
	}
	r.buf = r.buf[n:]
	return v
}

func (r *reader) fixed() uint64 {
	if len(r.buf) < 8 {
		r.fail("a field is cut off")
		return 0
	}
	v := binary.LittleEndian.Uint64(r.buf)
	r.buf = r.buf[8:]
	return v
}

func (r *reader) flag() bool {
	if len(r.buf) == 0 || r.buf[0] > 1 {
		r.fail("a flag is malformed")
		return false
	}
	v := r.buf[0] == 1
	r.buf = r.buf[1:]
	return v
}

// rest takes everything that is left.
func (r *reader) rest(limit int) []byte {
	if len(r.buf) > limit {
		r.fail("%d bytes, at most %d are allowed", len(r.buf), limit)
		return nil
	}
	v := r.buf
	r.buf = nil
	return v
}

func (r *reader) ask() ask {
	a := ask{ID: r.num(), Lease: r.flag()}
	if a.Lease {
		a.Number, a.Change, a.Digest, a.Note = r.num(), r.num(), r.fixed(), r.rest(MaxNote)
		if a.Number == 0 && r.err == nil {
			r.fail("node number 0")
		}
	}
	r.rest(0)
	return a
}

func (r *reader) answer() answer {
	a := answer{ID: r.num(), Index: r.num(), Lease: r.num(), Live: r.num()}
	a.Why = string(r.rest(MaxRefusal))
	switch {
	case a.Lease > 0 && a.Why != "":
		r.fail("granted and refused")
	case a.Lease > maxLease:
		r.fail("a lease of %d ns", a.Lease)
	case a.Live > maxMembers || a.Lease == 0 && a.Live > 0:
		r.fail("%d nodes hold a lease", a.Live)
	}
	return a
}

func (r *reader) part() part {
	p := part{Seq: r.num(), Total: r.num(), Offset: r.num(), Data: r.rest(MaxFrame)}
	switch {
	case p.Total > maxWhole:
		r.fail("a frame of %d bytes", p.Total)
	case len(p.Data) == 0, p.Offset >= p.Total, uint64(len(p.Data)) > p.Total-p.Offset:
		r.fail("a part that does not fit")
	}
	return p
}

func (r *reader) messages() []*pb.Message {
	var list []*pb.Message
	for len(r.buf) > 0 {
		size := r.num()
		if r.err != nil || size == 0 || size > uint64(len(r.buf)) {
			r.fail("a message is cut off")
			return nil
		}
		m := &pb.Message{}
		if err := proto.Unmarshal(r.buf[:size], m); err != nil {
			r.fail("a message of Raft: %w", err)
			return nil
		}
		r.buf = r.buf[size:]
		list = append(list, m)
	}
	if len(list) == 0 {
		r.fail("no message")
	}
	return list
}
