package bucket

import (
	"encoding/binary"
	"math"
)

// coder writes and reads the binary form of changes, outcomes and snapshots. One function lists the fields of a thing for
// both directions, so that the two cannot come apart. Numbers are varints; every number and length that is read has a
// limit, and no more memory is asked for than there are bytes left.
type coder struct {
	buf     []byte // written so far, or left to read
	reading bool
	bad     bool     // what was read is malformed; everything read from then on is zero
	whole   string   // what ends with buf, if texts are to be read as parts of one string; else each is its own
	answers *answers // that bodies are read into; nil: each is its own
}

// integer is what num can code. Negative numbers cannot be coded: they are read back as malformed.
type integer interface {
	~uint8 | ~uint32 | ~uint64 | ~int | ~int64
}

// num codes a number that is at most limit.
func num[T integer](c *coder, p *T, limit uint64) {
	if !c.reading {
		c.buf = binary.AppendUvarint(c.buf, uint64(*p))
		return
	}
	v, n := binary.Uvarint(c.buf)
	if n <= 0 || v > limit || c.bad {
		c.fail()
		*p = 0
		return
	}
	c.buf = c.buf[n:]
	*p = T(v)
}

// Limits of num for numbers that have none of their own.
const (
	anyUint  = math.MaxUint64
	anyInt   = math.MaxInt64
	anyUint8 = math.MaxUint8
)

// fixed codes a number of eight random bytes, which a varint would make longer.
func (c *coder) fixed(p *uint64) {
	if !c.reading {
		c.buf = binary.LittleEndian.AppendUint64(c.buf, *p)
		return
	}
	if len(c.buf) < 8 || c.bad {
		c.fail()
		*p = 0
		return
	}
	*p = binary.LittleEndian.Uint64(c.buf)
	c.buf = c.buf[8:]
}

func (c *coder) flag(p *bool) {
	var v uint8
	if *p {
		v = 1
	}
	num(c, &v, 1)
	*p = v == 1
}

// text codes a string of at most limit bytes.
func (c *coder) text(p *string, limit int) {
	n := len(*p)
	c.length(&n, limit)
	if !c.reading {
		c.buf = append(c.buf, *p...)
		return
	}
	if at := len(c.whole) - len(c.buf); at >= 0 {
		*p = c.whole[at : at+n]
	} else {
		*p = string(c.buf[:n])
	}
	c.buf = c.buf[n:]
}

// blob codes bytes, at most limit of them. None and nil are the same; what is read is a copy.
func (c *coder) blob(p *[]byte, limit int) {
	n := len(*p)
	c.length(&n, limit)
	if !c.reading {
		c.buf = append(c.buf, *p...)
		return
	}
	*p = nil
	if n > 0 {
		*p = append(make([]byte, 0, n), c.buf[:n]...)
		c.buf = c.buf[n:]
	}
}

// length codes how many bytes follow. Reading, it is never more than there are.
func (c *coder) length(n *int, limit int) {
	num(c, n, uint64(limit))
	if c.reading && *n > len(c.buf) {
		c.fail()
		*n = 0
	}
}

// count codes how many things follow of which each takes at least one byte.
func (c *coder) count(n *int) { c.length(n, math.MaxInt32) }

func (c *coder) fail() {
	c.bad = true
	c.buf = nil
}
