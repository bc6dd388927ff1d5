// Package subjects is the wire: every subject name, every message, the hash from a lock's name to its bucket, and the
// limits on what a message may carry.
//
// The package is pure: no I/O, no clock, no randomness, and no NATS import either, so that the pure rooms can use its
// types. What comes in is decoded strictly and wholly or refused with a [Refusal] that names the field; nothing is
// guessed. The specification of the format is docs/protocol.md.
//
// Read in this order: op.go (operations), address.go and subject.go (subjects), request.go (what a client may ask),
// field.go, decode.go, decode_value.go and decode_check.go (how it is read: which fields, each field, fields together),
// scan.go and value.go (the JSON below that), reply.go, refusal.go and event.go (what is answered), reply_json.go and the
// other *_json.go (how that is written, with append.go, and read back, with scan_reply.go).
//
// # Why a JSON codec of our own
//
// No codec that maps structs does all that the protocol asks: refuse lone surrogates, invalid UTF-8, null, and fields that
// are there twice; tell which field is wrong; know absent from zero. Of those below only v2 refuses the first two and
// twins. For comparison, an acquire of 151 bytes decoded, and a grant of 291 bytes encoded into a new buffer (Go 1.26, one
// core of a shared Xeon; ns and allocations):
//
//	                                decode acquire   encode grant
//	this package, all checks done        465, 2         520, 1
//	encoding/json                       2310, 12       1030, 1
//	go-json-experiment/json (v2)        1000, 4        1100, 1
//	segmentio/encoding                   830, 8         500, 1
//	goccy/go-json                        420, 8         320, 1
//
// The others leave durations, words and keys as text, so their figures lack what the protocol's checks would add. Into a
// buffer that is used again a grant costs 240 ns and no allocation: JSON is not what an operation spends its time on.
package subjects
