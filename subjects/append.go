package subjects

import (
	"encoding/base64"
	"strconv"
	"time"
	"unicode/utf8"
)

// The append functions write one member of an object each; the comma comes by itself. Those that begin with opt write
// nothing for the zero value.

// appendKey writes a member's name, which needs no escapes, and the colon.
func appendKey(dst []byte, key string) []byte {
	if dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(dst, '"')
	dst = append(dst, key...)
	return append(dst, '"', ':')
}

func appendText(dst []byte, key, s string) []byte {
	return appendString(appendKey(dst, key), s)
}

func optText(dst []byte, key, s string) []byte {
	if s == "" {
		return dst
	}
	return appendText(dst, key, s)
}

// appendWord writes a word of the protocol, which needs no escapes.
func appendWord(dst []byte, key, s string) []byte {
	dst = append(appendKey(dst, key), '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

func optWord(dst []byte, key, s string) []byte {
	if s == "" {
		return dst
	}
	return appendWord(dst, key, s)
}

func appendUint(dst []byte, key string, n uint64) []byte {
	return strconv.AppendUint(appendKey(dst, key), n, 10)
}

func optUint(dst []byte, key string, n uint64) []byte {
	if n == 0 {
		return dst
	}
	return appendUint(dst, key, n)
}

func appendInt(dst []byte, key string, n int) []byte {
	return strconv.AppendInt(appendKey(dst, key), int64(n), 10)
}

func optInt(dst []byte, key string, n int) []byte {
	if n == 0 {
		return dst
	}
	return appendInt(dst, key, n)
}

func appendBool(dst []byte, key string, b bool) []byte {
	return strconv.AppendBool(appendKey(dst, key), b)
}

func optTrue(dst []byte, key string, b bool) []byte {
	if !b {
		return dst
	}
	return appendBool(dst, key, b)
}

// appendHex writes 16 hexadecimal digits.
func appendHex(dst []byte, key string, n uint64) []byte {
	const digits = "0123456789abcdef"
	dst = append(appendKey(dst, key), '"')
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, digits[n>>shift&15])
	}
	return append(dst, '"')
}

func appendSpan(dst []byte, key string, d time.Duration) []byte {
	dst = append(appendKey(dst, key), '"')
	return append(appendDuration(dst, d), '"')
}

func optSpan(dst []byte, key string, d time.Duration) []byte {
	if d == 0 {
		return dst
	}
	return appendSpan(dst, key, d)
}

// appendTime writes Unix milliseconds as RFC 3339 in UTC.
func appendTime(dst []byte, key string, ms int64) []byte {
	return time.UnixMilli(ms).UTC().AppendFormat(appendKey(dst, key), `"2006-01-02T15:04:05.000Z"`)
}

// appendBytes writes bytes as text if they are UTF-8, and as base64 in the member that is called <key>64 if not.
func appendBytes(dst []byte, key, s string) []byte {
	if utf8.ValidString(s) {
		return appendText(dst, key, s)
	}
	dst = append(appendKey(dst, key+"64"), '"')
	dst = base64.StdEncoding.AppendEncode(dst, []byte(s))
	return append(dst, '"')
}

// appendRaw writes a value that is JSON already.
func appendRaw(dst []byte, key string, raw []byte) []byte {
	return append(appendKey(dst, key), raw...)
}

func appendTexts(dst []byte, key string, list []string) []byte {
	dst = append(appendKey(dst, key), '[')
	for i, s := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendString(dst, s)
	}
	return append(dst, ']')
}

// appendString writes a string in quotes. What is not UTF-8 in it becomes U+FFFD.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, n := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && n == 1 {
				dst = append(dst, s[start:i]...)
				dst = utf8.AppendRune(dst, utf8.RuneError)
				start = i + 1
			}
			i += n
			continue
		}
		dst = append(dst, s[start:i]...)
		dst = appendEscape(dst, c)
		i++
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

// appendEscape writes the escape of a quote, a backslash or a control character.
func appendEscape(dst []byte, c byte) []byte {
	const digits = "0123456789abcdef"
	switch c {
	case '"', '\\':
		return append(dst, '\\', c)
	case '\n':
		return append(dst, '\\', 'n')
	case '\r':
		return append(dst, '\\', 'r')
	case '\t':
		return append(dst, '\\', 't')
	}
	return append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
}

// appendDuration writes the shortest text that Go reads as d and that has no units but h, m, s and ms: "1m30s", "1.2s",
// "0.35ms", "0s". Less than nothing is nothing.
func appendDuration(dst []byte, d time.Duration) []byte {
	switch {
	case d <= 0:
		return append(dst, "0s"...)
	case d < time.Second:
		dst = strconv.AppendInt(dst, int64(d/time.Millisecond), 10)
		dst = appendFraction(dst, int64(d%time.Millisecond), 1e6)
		return append(dst, "ms"...)
	}
	if h := d / time.Hour; h > 0 {
		dst = append(strconv.AppendInt(dst, int64(h), 10), 'h')
	}
	if m := d % time.Hour / time.Minute; m > 0 {
		dst = append(strconv.AppendInt(dst, int64(m), 10), 'm')
	}
	if s := d % time.Minute; s > 0 {
		dst = strconv.AppendInt(dst, int64(s/time.Second), 10)
		dst = appendFraction(dst, int64(s%time.Second), 1e9)
		dst = append(dst, 's')
	}
	return dst
}

// appendFraction writes n/unit, less than 1, as a decimal fraction without trailing zeros; nothing for 0.
func appendFraction(dst []byte, n, unit int64) []byte {
	if n == 0 {
		return dst
	}
	dst = append(dst, '.')
	for n > 0 {
		unit /= 10
		dst = append(dst, '0'+byte(n/unit))
		n %= unit
	}
	return dst
}
