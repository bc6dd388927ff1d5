package subjects

import "strings"

const (
	textBlock = 2 << 10 // bytes of strings that are one allocation
	textMost  = 512     // what is longer is one by itself
)

// Texts makes strings that live for moments many to an allocation. The zero value is ready; nil makes each by itself. It is not safe for
// concurrent use; what it has given is.
//
// A Builder only ever adds to its memory, so a string that is a part of it stays as it was; one that is full is left to those who have
// such parts. The price is that a single one keeps all of its block: whoever keeps one for long makes a copy (strings.Clone).
type Texts struct{ block strings.Builder }

// Of is a string of these bytes.
func (t *Texts) Of(text []byte) string {
	if t == nil || len(text) > textMost {
		return string(text)
	}
	begin := t.begin(len(text))
	t.block.Write(text) // never fails
	return t.block.String()[begin:]
}

// Join is one string of two.
func (t *Texts) Join(first, second string) string {
	n := len(first) + len(second)
	if t == nil || n > textMost {
		return first + second
	}
	begin := t.begin(n)
	t.block.WriteString(first)
	t.block.WriteString(second)
	return t.block.String()[begin:]
}

// begin makes room for n bytes, and says where they begin.
func (t *Texts) begin(n int) int {
	if t.block.Cap()-t.block.Len() < n {
		t.block.Reset()
		t.block.Grow(textBlock)
	}
	return t.block.Len()
}
