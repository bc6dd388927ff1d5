package subjects

import (
	"bytes"
	"encoding/base64"
	"math"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

// valueKind says what a value was written as.
type valueKind uint8

const (
	kindNone valueKind = iota
	kindString
	kindNumber
	kindBool
	kindNull
	kindObject
	kindArray
	kindText // the value of a header: any of these without quotes
)

// String is the kind with its article, for messages.
func (k valueKind) String() string {
	switch k {
	case kindString, kindText:
		return "a string"
	case kindNumber:
		return "a number"
	case kindBool:
		return "a boolean"
	case kindNull:
		return "null"
	case kindObject:
		return "an object"
	case kindArray:
		return "an array"
	}
	return "nothing"
}

// value is one value as it was found. Its methods convert it; ok is false if it is not of that type or out of range.
type value struct {
	kind    valueKind
	escaped bool   // kindString: raw has escapes
	raw     []byte // the text, of a string without the quotes; a part of the buffer that was scanned
}

// text is the contents of a string. They may share memory with the buffer.
func (v value) text() (text []byte, ok bool) {
	if v.kind != kindString && v.kind != kindText {
		return nil, false
	}
	if v.escaped {
		return unescape(v.raw), true
	}
	return v.raw, true
}

// json is a copy of the value as it was found, which for a header's text is not JSON.
func (v value) json() []byte {
	if v.kind != kindString {
		return bytes.Clone(v.raw)
	}
	b := make([]byte, 0, len(v.raw)+2)
	b = append(b, '"')
	b = append(b, v.raw...)
	return append(b, '"')
}

// uint is a whole number that is written in digits alone.
func (v value) uint(most uint64) (n uint64, ok bool) {
	if v.kind != kindNumber && v.kind != kindText {
		return 0, false
	}
	n, ok = parseUint(v.raw)
	return n, ok && n <= most
}

func (v value) bool() (b, ok bool) {
	if v.kind != kindBool && v.kind != kindText {
		return false, false
	}
	b = string(v.raw) == "true"
	return b, b || string(v.raw) == "false"
}

// duration is a duration in Go's notation, not negative.
func (v value) duration() (d time.Duration, ok bool) {
	text, ok := v.text()
	if !ok {
		return 0, false
	}
	return parseDuration(text)
}

// hex is a number of exactly 16 hexadecimal digits.
func (v value) hex() (n uint64, ok bool) {
	text, ok := v.text()
	if !ok || len(text) != 16 {
		return 0, false
	}
	for _, c := range text {
		d := hexDigit(c)
		if d < 0 {
			return 0, false
		}
		n = n<<4 | uint64(d)
	}
	return n, true
}

// base64 is what a string of standard base64 with padding stands for.
func (v value) base64() (b []byte, ok bool) {
	text, ok := v.text()
	if !ok {
		return nil, false
	}
	for _, c := range text {
		if c == '\n' || c == '\r' { // which the decoder would pass over
			return nil, false
		}
	}
	b = make([]byte, base64.StdEncoding.DecodedLen(len(text)))
	n, err := base64.StdEncoding.Strict().Decode(b, text)
	return b[:n], err == nil
}

// time is a time of RFC 3339, in Unix milliseconds; none before 1970 or in a year of five digits.
func (v value) time() (ms int64, ok bool) {
	const year10000 = 253402300800000
	text, ok := v.text()
	if !ok {
		return 0, false
	}
	t, err := time.Parse(time.RFC3339, string(text))
	ms = t.UnixMilli()
	return ms, err == nil && 0 <= ms && ms < year10000
}

// parseUint reads decimal digits without leading zeros.
func parseUint(text []byte) (n uint64, ok bool) {
	if len(text) == 0 || len(text) > 1 && text[0] == '0' {
		return 0, false
	}
	for _, c := range text {
		d := uint64(c - '0')
		if d > 9 || n > (math.MaxUint64-d)/10 {
			return 0, false
		}
		n = n*10 + d
	}
	return n, true
}

// maxDurationText bounds what is parsed as a duration, in bytes; the longest that means anything is shorter.
const maxDurationText = 64

func parseDuration(text []byte) (time.Duration, bool) {
	digits := 0
	n := time.Duration(0)
	for digits < len(text) && text[digits]-'0' <= 9 && digits < 7 {
		n = n*10 + time.Duration(text[digits]-'0')
		digits++
	}
	if 0 < digits && digits < 7 { // the common case, which cannot overflow
		switch string(text[digits:]) {
		case "ms":
			return n * time.Millisecond, true
		case "s":
			return n * time.Second, true
		case "m":
			return n * time.Minute, true
		case "h":
			return n * time.Hour, true
		}
	}
	if len(text) > maxDurationText || len(text) > 0 && text[0] == '-' {
		return 0, false
	}
	d, err := time.ParseDuration(string(text))
	return d, err == nil
}

// escapeLen is the length of the escape that b begins with, a pair of surrogates being one; 0 if it is not valid.
func escapeLen(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		r := hexRune(b)
		switch {
		case r < 0:
			return 0
		case !utf16.IsSurrogate(r):
			return 6
		case len(b) >= 12 && b[6] == '\\' && b[7] == 'u' && utf16.DecodeRune(r, hexRune(b[6:])) != utf8.RuneError:
			return 12
		}
	}
	return 0
}

// hexRune reads \uXXXX; -1 if the digits are not there.
func hexRune(b []byte) (r rune) {
	if len(b) < 6 {
		return -1
	}
	for _, c := range b[2:6] {
		d := hexDigit(c)
		if d < 0 {
			return -1
		}
		r = r<<4 | rune(d)
	}
	return r
}

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}

// unescape resolves the escapes of a string that has been scanned, so that they are valid.
func unescape(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			out = append(out, raw[i])
			i++
			continue
		}
		n := escapeLen(raw[i:])
		switch c := raw[i+1]; c {
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 't':
			out = append(out, '\t')
		case 'u':
			r := hexRune(raw[i:])
			if n == 12 {
				r = utf16.DecodeRune(r, hexRune(raw[i+6:]))
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, c)
		}
		i += n
	}
	return out
}
