package subjects

import (
	"bytes"
	"strconv"
	"strings"
)

// A bundle is several requests in one message to the node that is their buckets' primary; a sheaf (sheaf.go) is several answers in one
// message to their callers' inbox. docs/protocol.md, "Many at once", has both. bundleMark begins what belongs to them in a subject.
const (
	bundleMark   = "~"
	bundlePrefix = "locks.b." + bundleMark
)

// Limits of a bundle.
const (
	MaxBundle       = 64       // requests
	MaxBundleBytes  = 32 << 10 // of the body
	maxBundleTokens = 320      // of the last token of its reply subject, which has the inbox before it
)

// BundleSubject is where user sends bundles to a node: locks.b.~<node>.acquire.<user>. Whoever may acquire may publish there.
func BundleSubject(node, user string) string {
	return bundlePrefix + node + "." + OpAcquire.String() + "." + user
}

// BundlePattern is what a node subscribes to for bundles.
func BundlePattern(node string) string { return BundleSubject(node, "*") }

// IsBundleSubject says whether a subject is one of bundles.
func IsBundleSubject(subject string) bool { return strings.HasPrefix(subject, bundlePrefix) }

// Bundled says whether a bundle may have requests of the operation.
func (o Op) Bundled() bool {
	return o == OpAcquire || o == OpRelease || o == OpRenew || o == OpCancel || o == OpKeep
}

// Bundle is a bundle in the making. The zero value is an empty one.
type Bundle struct {
	n      int
	tokens []byte
	body   []byte
}

// Add adds a request with a token of its own, the operation's token and its body. False: there is no room for it within the limits of the
// node, or it cannot be in any bundle.
func (b *Bundle) Add(limits BundleLimits, token, op string, body []byte) bool {
	switch {
	case b.n >= min(limits.Requests, MaxBundle),
		len(b.tokens)+len(bundleMark)+len(token) > maxBundleTokens,
		len(b.body)+len(op)+len(body)+2 > min(limits.Bytes, MaxBundleBytes),
		bytes.IndexByte(body, '\n') >= 0: // data may have one
		return false
	}
	b.n++
	b.tokens = append(append(b.tokens, bundleMark...), token...)
	b.body = append(append(append(append(b.body, op...), ' '), body...), '\n')
	return true
}

// Len is how many requests are in it.
func (b *Bundle) Len() int { return b.n }

// Reply is its reply subject; inbox is what comes before the last token, with the dot.
func (b *Bundle) Reply(inbox string) string { return inbox + string(b.tokens) }

// Body is its body, until the bundle is changed.
func (b *Bundle) Body() []byte { return b.body }

// Reset empties it.
func (b *Bundle) Reset() { b.n, b.tokens, b.body = 0, b.tokens[:0], b.body[:0] }

// Requests is a bundle that is taken apart.
type Requests struct {
	inbox  string // what all reply subjects begin with, the mark included
	tokens string
	body   []byte
}

// OpenBundle begins to take a bundle apart that is not empty. A refusal is of the whole bundle.
func OpenBundle(reply string, body []byte) (Requests, *Refusal) {
	n := bytes.Count(body, newline)
	if n > MaxBundle || len(body) > MaxBundleBytes {
		return Requests{}, tooLarge(fieldNone, "a bundle has "+strconv.Itoa(MaxBundle)+" requests and "+strconv.Itoa(MaxBundleBytes)+
			" bytes at most; send the others with the next one")
	}
	if n == 0 || body[len(body)-1] != '\n' {
		return Requests{}, badBundle("each request of a bundle is a line, which ends with a line feed")
	}
	inbox, tokens, ok := CutSheaf(reply)
	if !ok || !marked(tokens, n) {
		return Requests{}, badBundle("the last token of a bundle's reply subject has a token for each request, each with ~ before it")
	}
	return Requests{inbox: inbox, tokens: tokens, body: body}, nil
}

var (
	newline = []byte{'\n'}
	space   = []byte{' '}
)

// marked says whether n tokens stand there with marks between them.
func marked(tokens string, n int) bool {
	for token := range strings.SplitSeq(tokens, bundleMark) {
		if n--; token == "" {
			return false
		}
	}
	return n == 0
}

func badBundle(message string) *Refusal {
	return &Refusal{Code: 400, Reason: ReasonBadRequest, Message: message}
}

// Next gives the next request: its reply subject, made with texts, the token of its operation, which may be none, and its body. Both are
// part of the bundle's body.
func (r *Requests) Next(texts *Texts) (reply string, op, body []byte, ok bool) {
	if len(r.body) == 0 {
		return "", nil, nil, false
	}
	var line []byte
	var token string
	line, r.body, _ = bytes.Cut(r.body, newline)
	token, r.tokens, _ = strings.Cut(r.tokens, bundleMark)
	op, body, _ = bytes.Cut(line, space)
	return texts.Join(r.inbox, token), op, body, true
}

// Left is how many requests are still to come.
func (r *Requests) Left() int { return bytes.Count(r.body, newline) }

// BundleTokens gives the requests' own tokens of a bundle's reply subject, whose last token it is without the first mark.
func BundleTokens(token string) func(yield func(string) bool) {
	return strings.SplitSeq(token, bundleMark)
}

// BundleLimits is the answer to who asks whether a node takes bundles. The zero value is of one that takes none.
type BundleLimits struct {
	Requests int
	Bytes    int  // of the body
	Keep     bool // keep-alives too
}

// OwnBundleLimits are those of this version.
func OwnBundleLimits() BundleLimits {
	return BundleLimits{Requests: MaxBundle, Bytes: MaxBundleBytes, Keep: true}
}

// AppendJSON implements Body.
func (l BundleLimits) AppendJSON(dst []byte) []byte {
	dst = appendInt(append(dst, '{'), "requests", l.Requests)
	dst = appendInt(dst, "bytes", l.Bytes)
	return append(optTrue(dst, "keep", l.Keep), '}')
}

// DecodeJSON reads the answer.
func (l *BundleLimits) DecodeJSON(b []byte) error {
	*l = BundleLimits{}
	s := scanObject(b, replyDepth)
	for s.next() {
		switch string(s.key) {
		case "requests":
			l.Requests = s.int()
		case "bytes":
			l.Bytes = s.int()
		case "keep":
			l.Keep = s.bool()
		}
	}
	return s.end(l.Requests > 0 && l.Bytes > 0, "the limits of bundles")
}
