package chain

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Limits of the decoder. What is longer is not a message.
const (
	maxData    = 64 << 20 // bytes of one change, or of one part of a snapshot
	maxChanges = 1 << 20  // in one message
	format     = 1        // first byte of a message
)

// Encode appends the message's bytes to buf:
//
//	format 1 byte, kind 1 byte, bucket, epoch, from, to, then the fields of the kind in the order of coder.fields,
//	then 8 bytes: xxhash64 of everything before, little endian.
//
// Numbers are shortest varints, hashes 8 bytes little endian. A change has the difference of its epoch to that of the one
// before, its hash, and its data with the length before it; number and previous hash follow from where it stands. There is
// exactly one encoding of a message.
func (m *Message) Encode(buf []byte) []byte {
	c := coder{buf: slices.Grow(buf, m.size())}
	start := len(buf)
	c.message(m)
	return binary.LittleEndian.AppendUint64(c.buf, xxhash.Sum64(c.buf[start:]))
}

// size is about how long the message's bytes will be, for one allocation instead of many.
func (m *Message) size() int {
	return 128 + len(m.Data) + 24*len(m.Progress) + 16*len(m.Changes) + size(m.Changes)
}

// Decode reads what Encode wrote. The message's Data and the Data of its changes are parts of buf; a copy that receives it
// keeps none of them, nor its lists. Any other bytes than those that Encode writes give an error that wraps ErrMessage. That the changes
// are intact and follow each other is not checked here: it is the receiving copy that must notice and tell.
func Decode(buf []byte) (Message, error) {
	var m Message
	err := m.Decode(buf)
	return m, err
}

// Decode is [Decode] into the memory that a message has: that of its lists is used again. After an error it is empty.
func (m *Message) Decode(buf []byte) error {
	m.Reset()
	body := len(buf) - 8
	if body < 0 {
		return fmt.Errorf("%w: %d bytes", ErrMessage, len(buf))
	}
	if binary.LittleEndian.Uint64(buf[body:]) != xxhash.Sum64(buf[:body]) {
		return fmt.Errorf("%w: the sum is wrong", ErrMessage)
	}
	if err := m.decodeBody(buf[:body]); err != nil {
		m.Reset()
		return fmt.Errorf("%w: %w", ErrMessage, err)
	}
	return nil
}

func (m *Message) decodeBody(body []byte) error {
	c := coder{buf: body, reading: true}
	c.message(m)
	switch {
	case c.bad:
		return errors.New("a field is malformed")
	case len(c.buf) > 0:
		return fmt.Errorf("%d bytes too many", len(c.buf))
	}
	return nil
}

// Reset empties a message. It keeps the memory of its lists for Decode, unless that is much.
func (m *Message) Reset() { *m = Message{Changes: emptied(m.Changes), Progress: emptied(m.Progress)} }

// coder writes and reads messages. One function lists the fields for both directions, so that the two cannot come apart.
type coder struct {
	buf     []byte // written so far, or left to read
	reading bool
	bad     bool // what was read is malformed; everything read from then on is zero
}

func (c *coder) message(m *Message) {
	version := uint8(format)
	c.byte(&version, format, format)
	kind := uint8(m.Kind)
	c.byte(&kind, uint8(Append), uint8(kinds)-1)
	m.Kind = Kind(kind)
	bucket := uint64(m.Bucket)
	c.num(&bucket, 1<<32-1)
	m.Bucket = uint32(bucket)
	c.num(&m.Epoch, 1<<64-1)
	c.member(&m.From)
	c.member(&m.To)
	c.fields(m)
}

func (c *coder) fields(m *Message) {
	switch m.Kind {
	case Append:
		c.point(&m.Prev)
		c.num(&m.Confirmed, 1<<64-1)
		c.num(&m.Head, 1<<64-1)
		c.flag(&m.Floor)
		c.num(&m.Again, 1<<64-1)
		c.changes(m)
	case Ack:
		c.num(&m.Confirmed, 1<<64-1)
		c.flag(&m.Resend)
		c.num(&m.Again, 1<<64-1)
		c.num(&m.Doubt, 1<<64-1)
		c.progress(&m.Progress)
	case Hello, Join:
		c.point(&m.Last)
		c.point(&m.Anchor)
		c.flag(&m.Fresh)
	case Chunk:
		c.point(&m.Base)
		c.num(&m.Size, 1<<63-1)
		c.fixed(&m.Sum)
		c.num(&m.Offset, 1<<63-1)
		c.blob(&m.Data)
	case ChunkAck:
		c.point(&m.Base)
		c.num(&m.Size, 1<<63-1)
		c.fixed(&m.Sum)
		c.num(&m.Offset, 1<<63-1)
	case Redirect:
		c.member(&m.At)
	}
}

// changes codes each change with what does not follow from the one before.
func (c *coder) changes(m *Message) {
	n := uint64(len(m.Changes))
	c.count(&n, maxChanges, 10)
	if c.reading && n > 0 {
		m.Changes = room(m.Changes, n)
	}
	before := m.Prev
	for i := range m.Changes {
		ch := &m.Changes[i]
		step := ch.Epoch - before.Epoch
		c.num(&step, 1<<64-1-before.Epoch)
		c.fixed(&ch.Hash)
		c.blob(&ch.Data)
		if before.Seq == 1<<64-1 {
			c.fail()
		}
		if c.reading {
			ch.Epoch, ch.Seq, ch.Prev = before.Epoch+step, before.Seq+1, before.Hash
		}
		before = ch.point()
	}
}

// room is an empty list with as many entries, all zero, in the memory that there is, if that is enough.
func room[T any](list []T, n uint64) []T {
	if n > uint64(cap(list)) {
		return make([]T, n)
	}
	return list[:n]
}

func (c *coder) progress(list *[]Progress) {
	n := uint64(len(*list))
	c.count(&n, 2*MaxChain, 3)
	if c.reading && n > 0 {
		*list = room(*list, n)
	}
	for i := range *list {
		p := &(*list)[i]
		c.member(&p.Member)
		c.num(&p.Seq, 1<<64-1)
	}
}

func (c *coder) member(m *Member) {
	c.num(&m.Node, 1<<64-1)
	c.num(&m.Inc, 1<<64-1)
}

func (c *coder) point(p *Point) {
	c.num(&p.Epoch, 1<<64-1)
	c.num(&p.Seq, 1<<64-1)
	c.fixed(&p.Hash)
}

func (c *coder) byte(p *uint8, low, high uint8) {
	if !c.reading {
		c.buf = append(c.buf, *p)
		return
	}
	if len(c.buf) == 0 || c.buf[0] < low || c.buf[0] > high {
		c.fail()
		*p = 0
		return
	}
	*p = c.buf[0]
	c.buf = c.buf[1:]
}

func (c *coder) flag(p *bool) {
	var v uint8
	if *p {
		v = 1
	}
	c.byte(&v, 0, 1)
	*p = v == 1
}

// num codes a number that is at most limit, as the shortest varint there is.
func (c *coder) num(p *uint64, limit uint64) {
	if !c.reading {
		c.buf = binary.AppendUvarint(c.buf, *p)
		return
	}
	v, n := binary.Uvarint(c.buf)
	if n <= 0 || v > limit || n > 1 && c.buf[n-1] == 0 {
		c.fail()
		*p = 0
		return
	}
	c.buf = c.buf[n:]
	*p = v
}

func (c *coder) fixed(p *uint64) {
	if !c.reading {
		c.buf = binary.LittleEndian.AppendUint64(c.buf, *p)
		return
	}
	if len(c.buf) < 8 {
		c.fail()
		*p = 0
		return
	}
	*p = binary.LittleEndian.Uint64(c.buf)
	c.buf = c.buf[8:]
}

// count codes how many things follow, each of at least size bytes, so that no memory is asked for without cause.
func (c *coder) count(n *uint64, limit, size uint64) {
	c.num(n, limit)
	if c.reading && *n*size > uint64(len(c.buf)) {
		c.fail()
		*n = 0
	}
}

func (c *coder) blob(p *[]byte) {
	n := uint64(len(*p))
	c.count(&n, maxData, 1)
	if !c.reading {
		c.buf = append(c.buf, *p...)
		return
	}
	*p = nil
	if n > 0 {
		*p = c.buf[:n:n]
		c.buf = c.buf[n:]
	}
}

func (c *coder) fail() {
	c.bad = true
	c.buf = nil
}
