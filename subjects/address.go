package subjects

import (
	"fmt"
	"strconv"
	"strings"
)

// Anyone is the user token of callers without one: everybody in an open zone, and whoever uses an unnamed subject.
const Anyone = "anyone"

// SessionIDLen is the length of a session's public id, the first characters of its token.
const SessionIDLen = 11

// maxReply bounds a reply subject, in bytes; the queue keeps it for as long as a request waits.
const maxReply = 512

// Path is the form of a request's subject. The zero Path is none.
type Path uint8

// The forms.
const (
	Hot      Path = iota + 1 // locks.b.<bucket>.<op>.<user>
	Simple                   // locks.<op>.<user>
	Unnamed                  // locks.<op>
	KeepNode                 // locks.keep.<node>.<user>
)

// Address is a request's subject taken apart.
type Address struct {
	Path   Path
	Bucket uint32 // Hot
	Op     Op
	User   string // Anyone if Unnamed
	Node   string // KeepNode
}

// ParseAddress takes the subject of a request apart without allocating. It returns ErrSubject for one that is not of the
// protocol; ErrOp and ErrUnnamed for an operation that cannot be used there, with the other fields filled in.
func ParseAddress(subject string) (Address, error) {
	var t [4]string
	rest, ok := strings.CutPrefix(subject, root)
	n := split(rest, &t)
	if !ok || n == 0 {
		return Address{}, wrongSubject(subject)
	}
	switch {
	case t[0] == "b":
		bucket, ok := parseBucket(t[1])
		if n != 4 || !ok {
			return Address{}, wrongSubject(subject)
		}
		a := Address{Path: Hot, Bucket: bucket, User: t[3]}
		return a.withOp(t[2])
	case t[0] == "event":
		return Address{}, wrongSubject(subject)
	case n == 1:
		a := Address{Path: Unnamed, User: Anyone}
		return a.withOp(t[0])
	case n == 2:
		a := Address{Path: Simple, User: t[1]}
		return a.withOp(t[0])
	case n == 3 && t[0] == "keep":
		return Address{Path: KeepNode, Op: OpKeep, Node: t[1], User: t[2]}, nil
	}
	return Address{}, wrongSubject(subject)
}

// withOp completes an address whose operation is the given token.
func (a Address) withOp(token string) (Address, error) {
	op, ok := ParseOp(token)
	if !ok || a.Path == Hot && !op.OnName() && op != OpSessionClose {
		return a, fmt.Errorf("%w: %.40q", ErrOp, token)
	}
	a.Op = op
	if a.Path == Unnamed && op == OpForce {
		return a, fmt.Errorf("%w: %s", ErrUnnamed, token)
	}
	return a, nil
}

// root is where every subject of the protocol begins.
const root = "locks."

func wrongSubject(subject string) error {
	return fmt.Errorf("%w: %.80q", ErrSubject, subject)
}

// split cuts a subject into its tokens and returns how many there are; 0 if there are more than four or one is not valid.
func split(s string, t *[4]string) int {
	for n := range t {
		token, rest, more := strings.Cut(s, ".")
		if !ValidToken(token) {
			return 0
		}
		t[n] = token
		if !more {
			return n + 1
		}
		s = rest
	}
	return 0
}

// parseBucket reads a bucket's number as HotSubject writes it: decimal, without leading zeros.
func parseBucket(s string) (uint32, bool) {
	if s == "" || len(s) > 1 && s[0] == '0' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 32)
	return uint32(n), err == nil
}

// ValidToken says whether s can be one token of a subject: printable ASCII without dots and blanks, and not a wildcard.
func ValidToken(s string) bool {
	if s == "" || s == "*" || s == ">" {
		return false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f || s[i] == '.' {
			return false
		}
	}
	return true
}

// ValidReply says whether the broker may publish an answer for user on the subject reply: below _INBOX.<user>. or, where
// inboxes are shared (an open zone is one such), anywhere below _INBOX. Everything else is not the caller's own.
func ValidReply(reply, user string, shared bool) bool {
	rest, ok := strings.CutPrefix(reply, "_INBOX.")
	if !ok || len(reply) > maxReply {
		return false
	}
	if !shared {
		if !ValidToken(user) || !strings.HasPrefix(rest, user) || len(rest) == len(user) || rest[len(user)] != '.' {
			return false
		}
		rest = rest[len(user)+1:]
	}
	for more := true; more; {
		var token string
		token, rest, more = strings.Cut(rest, ".")
		if !ValidToken(token) {
			return false
		}
	}
	return true
}
