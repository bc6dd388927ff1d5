package subjects

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"unicode/utf8"
)

// How deep values may be nested. Requests have the smaller limit, so that a reply that quotes a request's data inside a
// record inside a page is within the larger one.
const (
	requestDepth = 32
	replyDepth   = 64
)

// scanner walks over one JSON object or array, member by member, without allocating: each value is left as it was found
// and nothing below it is built. It is as strict as RFC 8259 and more: everything is valid UTF-8 and no escape is half of
// a surrogate pair, in values that nobody asks for too.
//
//	s := scanObject(body, replyDepth)
//	for s.next() {
//		switch string(s.key) { … s.val … }
//	}
//	if s.err != nil …
//
// Errors stick: after the first one next is false and the value methods change nothing.
type scanner struct {
	buf   []byte
	pos   int
	limit int  // of nesting, counting the object itself
	shut  byte // the closing bracket
	inner bool // the text goes on after the closing bracket
	begun bool
	done  bool

	key []byte // of the member, escapes resolved; nil in an array
	val value
	err error
}

// scanObject begins to walk over the object that body is.
func scanObject(body []byte, depth int) scanner {
	return scanner{buf: body, limit: depth, shut: '}'}
}

// scanArray begins to walk over an array, which is the raw text of a value that has been scanned before.
func scanArray(raw []byte, depth int) scanner {
	return scanner{buf: raw, limit: depth, shut: ']'}
}

// next reads the next member. It is false at the end, which is the end of the text too, and after an error.
func (s *scanner) next() bool {
	if s.done || s.err != nil {
		return false
	}
	s.key = nil
	s.space()
	switch c := s.peek(); {
	case !s.begun && c == s.shut-2: // in ASCII an opening bracket stands two before the closing one
		s.begun = true
		s.pos++
		s.space()
		if s.peek() == s.shut {
			return s.finish()
		}
	case !s.begun:
		s.fail("an object was expected")
		return false
	case c == ',':
		s.pos++
		s.space()
	case c == s.shut:
		return s.finish()
	default:
		s.fail("a comma or a closing bracket was expected")
		return false
	}
	if s.shut == '}' && !s.readKey() {
		return false
	}
	s.val = s.value()
	return s.err == nil
}

// finish reads the closing bracket, after which nothing but blanks may come unless this is an inner value.
func (s *scanner) finish() bool {
	s.pos++
	s.done = true
	if s.inner {
		return false
	}
	s.space()
	if s.pos < len(s.buf) {
		s.fail("nothing was expected after the end")
	}
	return false
}

// readKey reads a member's name and the colon.
func (s *scanner) readKey() bool {
	if s.peek() != '"' {
		s.fail("a field's name in double quotes was expected")
		return false
	}
	name := s.string()
	if s.err != nil {
		return false
	}
	s.space()
	if s.peek() != ':' {
		s.fail("a colon was expected")
		return false
	}
	s.pos++
	s.space()
	s.key, _ = name.text()
	return true
}

// value reads any value.
func (s *scanner) value() value {
	start := s.pos
	var kind valueKind
	switch c := s.peek(); c {
	case '"':
		return s.string()
	case '{':
		kind = kindObject
		s.nested('}')
	case '[':
		kind = kindArray
		s.nested(']')
	case 't':
		kind = kindBool
		s.literal("true")
	case 'f':
		kind = kindBool
		s.literal("false")
	case 'n':
		kind = kindNull
		s.literal("null")
	default:
		kind = kindNumber
		s.number()
	}
	return value{kind: kind, raw: s.buf[start:s.pos]}
}

// nested skips an object or an array, and checks it.
func (s *scanner) nested(shut byte) {
	if s.limit <= 1 {
		s.fail("values are nested too deep")
		return
	}
	inner := scanner{buf: s.buf, pos: s.pos, limit: s.limit - 1, shut: shut, inner: true}
	for inner.next() {
		continue
	}
	s.pos, s.err = inner.pos, inner.err
}

// string reads a string; its raw text is without the quotes.
func (s *scanner) string() value {
	start := s.pos + 1
	for i := plainLen(s.buf, start); i < len(s.buf); i++ {
		switch c := s.buf[i]; {
		case c == '"':
			s.pos = i + 1
			return value{kind: kindString, raw: s.buf[start:i]}
		case c == '\\' || c < ' ' || c >= utf8.RuneSelf:
			return s.stringRest(start, i)
		}
	}
	s.pos = len(s.buf)
	s.fail("a closing quote was expected")
	return value{}
}

// plainLen passes over the bytes from i on that mean nothing special in a string, eight at a time: no quotes, backslashes,
// control characters and nothing but ASCII. It may stop early. Names and tokens are long, and this halves their cost.
func plainLen(b []byte, i int) int {
	const ones = 0x0101010101010101
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		quote := x ^ ones*'"'
		slash := x ^ ones*'\\'
		// The highest bit of a byte is set if the byte is special, or one before it is: subtraction borrows upwards only.
		special := (x - ones*' ') | (quote - ones) | (slash - ones) | x
		if special &= ones << 7; special != 0 {
			return i + bits.TrailingZeros64(special)/8
		}
	}
	return i
}

// stringRest reads the rest, from i, of a string that is not plain ASCII.
func (s *scanner) stringRest(start, i int) value {
	escaped := false
	for i < len(s.buf) {
		switch c := s.buf[i]; {
		case c == '"':
			s.pos = i + 1
			return value{kind: kindString, escaped: escaped, raw: s.buf[start:i]}
		case c == '\\':
			escaped = true
			n := escapeLen(s.buf[i:])
			if n == 0 {
				s.pos = i
				s.fail("a valid escape was expected, surrogates in pairs")
				return value{}
			}
			i += n
		case c < ' ':
			s.pos = i
			s.fail("control characters must be escaped in a string")
			return value{}
		case c < utf8.RuneSelf:
			i++
		default:
			r, n := utf8.DecodeRune(s.buf[i:])
			if r == utf8.RuneError && n == 1 {
				s.pos = i
				s.fail("strings must be valid UTF-8")
				return value{}
			}
			i += n
		}
	}
	s.pos = len(s.buf)
	s.fail("a closing quote was expected")
	return value{}
}

// number reads what the grammar of JSON calls a number.
func (s *scanner) number() {
	start := s.pos
	if s.peek() == '-' {
		s.pos++
	}
	if s.peek() == '0' {
		s.pos++
	} else if !s.digits() {
		s.pos = start
		s.fail("a value was expected")
		return
	}
	if s.peek() == '.' {
		s.pos++
		if !s.digits() {
			s.fail("a digit was expected")
			return
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.pos++
		if c = s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		if !s.digits() {
			s.fail("a digit was expected")
		}
	}
}

// digits reads decimal digits and says whether there was one.
func (s *scanner) digits() bool {
	start := s.pos
	for s.pos < len(s.buf) && s.buf[s.pos]-'0' <= 9 {
		s.pos++
	}
	return s.pos > start
}

func (s *scanner) literal(word string) {
	if len(s.buf)-s.pos < len(word) || string(s.buf[s.pos:s.pos+len(word)]) != word {
		s.fail("a value was expected")
		return
	}
	s.pos += len(word)
}

func (s *scanner) space() {
	for s.pos < len(s.buf) && blank(s.buf[s.pos]) {
		s.pos++
	}
}

// blanks is the white space of JSON.
const blanks = " \n\r\t"

func blank(c byte) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t'
}

// peek is the next byte, or 0 at the end: a byte that JSON has no use for.
func (s *scanner) peek() byte {
	if s.pos < len(s.buf) {
		return s.buf[s.pos]
	}
	return 0
}

// fail ends the walk.
func (s *scanner) fail(what string) {
	switch {
	case s.err != nil:
	case s.pos >= len(s.buf):
		s.err = fmt.Errorf("%s, but the text ends at byte %d", what, len(s.buf))
	default:
		s.err = fmt.Errorf("%s at byte %d", what, s.pos)
	}
}
