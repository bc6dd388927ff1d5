package cli

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// ParseDuration reads a duration as Go writes it (10s, 1m30s) or, as flock has it, a number of seconds (10, 0.5).
func ParseDuration(s string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(s, 64); err == nil && seconds >= 0 && seconds < 1e9 {
		return time.Duration(seconds * float64(time.Second)), nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, usagef("%q is no duration: expected 10s, 1m30s, or a number of seconds", s)
	}
	return d, nil
}

// Duration is a flag that is read by ParseDuration. Set says whether it was given.
type Duration struct {
	Value time.Duration
	Given bool
}

// Set implements pflag.Value.
func (d *Duration) Set(s string) (err error) {
	d.Value, err = ParseDuration(s)
	d.Given = err == nil
	return err
}

// String implements pflag.Value.
func (d *Duration) String() string {
	if d.Value == 0 {
		return ""
	}
	return d.Value.String()
}

// Type implements pflag.Value.
func (d *Duration) Type() string { return "DURATION" }

// Pointer is the duration, nil if it was not given.
func (d *Duration) Pointer() *time.Duration {
	if !d.Given {
		return nil
	}
	return &d.Value
}

// ParseKey reads an unlock key, 16 hexadecimal digits.
func ParseKey(s string) (uint64, error) {
	key, err := strconv.ParseUint(s, 16, 64)
	if err != nil || len(s) != 16 {
		return 0, usagef("%q is no key: expected the 16 hexadecimal digits of the grant", s)
	}
	return key, nil
}

// ParseToken reads a fencing token.
func ParseToken(s string) (uint64, error) {
	token, err := strconv.ParseUint(s, 10, 64)
	if err != nil || token == 0 || token > subjects.MaxToken {
		return 0, usagef("%q is no fencing token: expected a number", s)
	}
	return token, nil
}

// DecodeName reads a name in base64, with or without padding, in either alphabet.
func DecodeName(s string) (string, error) {
	plain := strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(s, "="))
	name, err := base64.RawStdEncoding.DecodeString(plain)
	if err != nil {
		return "", usagef("%q is not base64: %v", s, err)
	}
	return string(name), nil
}

// shell quotes an argument so that a POSIX shell reads it as it is.
func shell(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@%+=:,./_-") == "" && s[0] != '-' {
		return s
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\ufffd' }) {
		return "--name64 " + base64.StdEncoding.EncodeToString([]byte(s))
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Word finds the value of a flag among words; "" is the first.
func Word[T fmt.Stringer](flag, s string, words ...T) (T, error) {
	if s == "" {
		return words[0], nil
	}
	var known []string
	for _, w := range words {
		if w.String() == s {
			return w, nil
		}
		if w.String() != "" {
			known = append(known, w.String())
		}
	}
	return words[0], usagef("%s %q is unknown: expected %s", flag, s, strings.Join(known, ", "))
}

// DefaultHolder is user@host: for a lock that outlives the process, whose number would tell nothing.
func DefaultHolder() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	if u, err := user.Current(); err == nil {
		return u.Username + "@" + host
	}
	return host
}
