package output

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Text is s as it is if that is plain to read: printable, no blanks at the ends, nothing that looks like quoting.
// Otherwise it is quoted as in Go, which shows every byte. So two strings that differ look different, and none can move the
// cursor. An empty s is "-".
func Text(s string) string {
	if s == "" {
		return "-"
	}
	if s == "-" || !utf8.ValidString(s) || strings.TrimSpace(s) != s || strings.ContainsAny(s, "\"\\\ufffd") ||
		strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
}

// Key is an unlock key as on the wire.
func Key(key uint64) string { return fmt.Sprintf("%016x", key) }

// Span is a length of time for people, three or four significant digits: 740ms, 12.3s, 4m05s, 3h20m, 9d4h.
func Span(d time.Duration) string {
	const day = 24 * time.Hour
	d = max(d, 0)
	switch {
	case d == 0:
		return "0s"
	case d < time.Millisecond:
		return strconv.FormatInt(d.Microseconds(), 10) + "µs"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < time.Minute:
		return strconv.FormatFloat(float64(d/(100*time.Millisecond))/10, 'f', -1, 64) + "s"
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 2*day:
		return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%dd%dh", d/day, d%day/time.Hour)
	}
}

// limit is a setting, told exactly: 10s, 1m, 1m30s; 0 is none.
func limit(d time.Duration) string {
	if d == 0 {
		return "none"
	}
	s := d.String()
	if d%time.Minute == 0 {
		s = strings.TrimSuffix(s, "0s")
	}
	if d%time.Hour == 0 {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// count is "1 holder" or "3 holders".
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}

// Cut shortens s to width characters, marking that; 0 is no limit.
func Cut(s string, width int) string {
	if width <= 0 || utf8.RuneCountInString(s) <= width {
		return s
	}
	return string([]rune(s)[:width-1]) + "…"
}
