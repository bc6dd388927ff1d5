package subjects

import (
	"fmt"
	"math"
	"time"
)

// The methods below convert the value of the member that next has read. If it is of another type the walk ends, and they
// return nothing, as they do after any error.

// mismatch ends the walk because of the present member.
func (s *scanner) mismatch(ok bool, what string) {
	if !ok && s.err == nil {
		s.err = fmt.Errorf("%.40q is %s, not %s", s.key, s.val.kind, what)
	}
}

func (s *scanner) text() string {
	text, ok := s.val.text()
	s.mismatch(ok, "a string")
	return string(text)
}

func (s *scanner) uint() uint64 {
	n, ok := s.val.uint(math.MaxUint64)
	s.mismatch(ok, "a whole number")
	return n
}

func (s *scanner) uint32() uint32 {
	n, ok := s.val.uint(math.MaxUint32)
	s.mismatch(ok, "a whole number of 32 bits")
	return uint32(n)
}

func (s *scanner) int() int {
	n, ok := s.val.uint(math.MaxInt)
	s.mismatch(ok, "a whole number")
	return int(n)
}

func (s *scanner) bool() bool {
	b, ok := s.val.bool()
	s.mismatch(ok, "true or false")
	return b
}

func (s *scanner) span() time.Duration {
	d, ok := s.val.duration()
	s.mismatch(ok, "a duration")
	return d
}

func (s *scanner) hex() uint64 {
	n, ok := s.val.hex()
	s.mismatch(ok, "16 hexadecimal digits")
	return n
}

func (s *scanner) time() int64 {
	ms, ok := s.val.time()
	s.mismatch(ok, "a time")
	return ms
}

func (s *scanner) base64() string {
	b, ok := s.val.base64()
	s.mismatch(ok, "base64")
	return string(b)
}

func (s *scanner) word(words []string) uint8 {
	text, _ := s.val.text()
	i, ok := findWord(words, text)
	s.mismatch(ok, "a word that is known here")
	return i
}

// object is the raw text of the present member, an object.
func (s *scanner) object() []byte {
	s.mismatch(s.val.kind == kindObject, "an object")
	return s.val.raw
}

// array begins to walk over the present member, an array.
func (s *scanner) array() scanner {
	s.mismatch(s.val.kind == kindArray, "an array")
	if s.err != nil {
		return scanner{done: true}
	}
	return scanArray(s.val.raw, replyDepth)
}

// each decodes the objects of the present member, an array.
func (s *scanner) each(decode func(object []byte) error) {
	a := s.array()
	for a.next() {
		if object := a.object(); a.err == nil {
			a.adopt(decode(object))
		}
	}
	s.adopt(a.err)
}

func (s *scanner) texts() []string {
	list := []string{}
	a := s.array()
	for a.next() {
		list = append(list, a.text())
	}
	s.adopt(a.err)
	return list
}

// adopt ends the walk if there was an error in what the present member holds.
func (s *scanner) adopt(err error) {
	if s.err == nil {
		s.err = err
	}
}

// end is the result of the whole walk. ok says whether what makes it that message was there.
func (s *scanner) end(ok bool, what string) error {
	switch {
	case s.err != nil:
		return fmt.Errorf("%w: decode %s: %w", ErrBody, what, s.err)
	case !ok:
		return fmt.Errorf("%w: not %s", ErrBody, what)
	}
	return nil
}
