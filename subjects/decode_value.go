package subjects

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

const (
	maxUint     = math.MaxUint64
	maxDuration = time.Duration(math.MaxInt64)
)

// refuse makes the answer 400 bad_request about a field, fieldNone for the whole body.
func (d *decoder) refuse(f field, message string) {
	if d.refusal == nil {
		d.refusal = &Refusal{Code: 400, Reason: ReasonBadRequest, Field: f.String(), Message: message}
	}
}

// expected refuses the field that is being read because v is not what it should be.
func (d *decoder) expected(v value, what string) {
	is := v.kind.String()
	switch d.field {
	case fieldKey, fieldSecret, fieldSession, fieldReceipt: // not to be repeated in a message
	default:
		if text, ok := v.text(); ok {
			is = shorten(text)
		} else if v.kind == kindNumber {
			is = "the number " + strings.Trim(shorten(v.raw), `"`)
		}
	}
	hint := ""
	if v.kind == kindNull {
		hint = ", or leave the field out"
	}
	d.refuse(d.field, fmt.Sprintf("%s is %s; send %s%s", d.field, is, what, hint))
}

func unsupported(name, message string) *Refusal {
	return &Refusal{Code: 400, Reason: ReasonUnsupported, Field: name, Message: message}
}

func tooLarge(f field, message string) *Refusal {
	return &Refusal{Code: 413, Reason: ReasonTooLarge, Field: f.String(), Message: message}
}

// shorten quotes what a client sent for a message.
func shorten(text []byte) string {
	const most = 40
	if len(text) > most {
		return strconv.Quote(string(text[:most])) + "…"
	}
	return strconv.Quote(string(text))
}

// setBuckets decodes one bucket or a range of them: "7", "16-31".
func (d *decoder) setBuckets(v value) {
	text := d.text(v, 1, 2*maxDigits+1)
	first, last, ranged := strings.Cut(text, "-")
	if !ranged {
		last = first
	}
	from, okFrom := parseBucket(first)
	to, okTo := parseBucket(last)
	if !okFrom || !okTo || from > to || to-from >= MaxBucketRange {
		d.expected(v, fmt.Sprintf(`a bucket or a range of at most %d, such as "7" or "16-31"`, MaxBucketRange))
		return
	}
	d.r.FirstBucket, d.r.LastBucket = from, to
	d.r.Has |= HasBuckets
}

// maxDigits is how long a bucket's number can be.
const maxDigits = 10

func (d *decoder) bool(v value) bool {
	b, ok := v.bool()
	if !ok {
		d.expected(v, "true or false")
	}
	return b
}

func (d *decoder) uint(v value, least, most uint64) uint64 {
	n, ok := v.uint(most)
	if !ok || n < least {
		d.expected(v, fmt.Sprintf("a whole number from %d to %d, in digits and without quotes", least, most))
	}
	return n
}

func (d *decoder) duration(v value, most time.Duration) time.Duration {
	t, ok := v.duration()
	if !ok || t > most {
		d.expected(v, fmt.Sprintf(`a duration such as "30s" or "1m30s", from "0s" to %q`, appendDuration(nil, most)))
	}
	return t
}

// text decodes a string of least to most bytes.
func (d *decoder) text(v value, least, most int) string { return d.textIn(nil, v, least, most) }

func (d *decoder) textIn(texts *Texts, v value, least, most int) string {
	text, ok := v.text()
	switch {
	case !ok:
		d.expected(v, "a string")
	case len(text) > most:
		d.refuse(d.field, fmt.Sprintf("%s has %d bytes; send %d at most", d.field, len(text), most))
	case len(text) < least:
		d.refuse(d.field, fmt.Sprintf("%s is empty; give it a value or leave the field out", d.field))
	default:
		return texts.Of(text)
	}
	return ""
}

// word decodes one of the words and returns its place among them.
func (d *decoder) word(v value, words []string) uint8 {
	text, ok := v.text()
	if i, found := findWord(words, text); ok && found {
		return i
	}
	listed := words
	if listed[0] == "" {
		listed = listed[1:]
	}
	d.expected(v, strings.Join(listed, ", "))
	return 0
}

// setBytes decodes a lock's name or the beginning of one, as text or base64. In session-open, name is text for people.
func (d *decoder) setBytes(v value) {
	if d.known == OpSessionOpen {
		d.r.Holder = d.text(v, 0, MaxHolder)
		return
	}
	text, ok := v.text()
	if !ok {
		d.expected(v, "a string")
		return
	}
	switch d.field {
	case fieldName64, fieldPrefix64:
		if text, ok = v.base64(); !ok {
			d.expected(v, "standard base64, with padding and without line breaks")
			return
		}
	}
	switch d.field {
	case fieldPrefix, fieldPrefix64:
		if len(text) > MaxName {
			d.refusal = tooLarge(d.field, fmt.Sprintf("%s has %d bytes; no name has more than %d", d.field, len(text), MaxName))
			return
		}
		d.r.Prefix = string(text)
		d.r.Has |= HasPrefix
	default:
		d.setName(text)
	}
}

// setName takes the bytes of a lock's name.
func (d *decoder) setName(name []byte) {
	switch {
	case len(name) == 0:
		d.refuse(d.field, d.field.String()+" is empty; send a name of 1 to 4096 bytes")
	case len(name) > MaxName:
		d.refusal = tooLarge(d.field, fmt.Sprintf("%s has %d bytes; send %d at most", d.field, len(name), MaxName))
	default:
		d.r.Name = d.texts.Of(name)
	}
}

// setData keeps a copy of any JSON, as it was sent.
func (d *decoder) setData(v value) {
	if v.kind == kindNone {
		d.refuse(d.field, "data is not valid JSON; a string needs its quotes in a header too")
		return
	}
	data := v.json()
	if len(data) > MaxData {
		d.refusal = tooLarge(d.field, fmt.Sprintf("data has %d bytes; send %d at most", len(data), MaxData))
		return
	}
	d.r.Data = data
	d.r.Has |= HasData
}

// setKey decodes an unlock key.
func (d *decoder) setKey(v value) {
	key, ok := v.hex()
	if !ok {
		d.expected(v, "the 16 hexadecimal digits of the grant, in quotes")
	}
	d.r.Key = key
	d.r.Has |= HasKey
}

// setRequire checks that the operation knows every field that the request insists on. In a header they stand between
// commas.
func (d *decoder) setRequire(v value) {
	if v.kind == kindText {
		for name := range bytes.SplitSeq(v.raw, []byte{','}) {
			d.require(bytes.TrimSpace(name))
		}
		return
	}
	if v.kind != kindArray {
		d.expected(v, `an array of field names such as ["acks"]`)
		return
	}
	s := scanArray(v.raw, requestDepth)
	for s.next() {
		name, ok := s.val.text()
		if !ok {
			d.expected(v, `an array of field names such as ["acks"]`)
		}
		d.require(name)
	}
}

// require refuses the request if the operation does not know a field.
func (d *decoder) require(name []byte) {
	if d.refusal != nil || d.known.field(name) != fieldNone {
		return
	}
	echo := name[:min(len(name), maxFieldEcho)]
	d.refusal = unsupported(strings.ToValidUTF8(string(echo), ""), fmt.Sprintf(
		"this broker knows no field %s of %s; leave it out of require if the request may be carried out without it",
		shorten(name), d.known))
}

// maxFieldEcho bounds a field's name that is repeated in a refusal, in bytes.
const maxFieldEcho = 64

// setRequestID decodes the idempotency id, once it is known whether the request is in a session.
func (d *decoder) setRequestID() {
	v := d.request
	if d.refusal != nil || v.kind == kindNone {
		return
	}
	d.field = fieldRequest
	text, isText := v.text()
	if v.kind == kindNumber {
		text = v.raw
	}
	n, isNumber := parseUint(text)
	switch r := d.r; {
	case r.Session != "" && isNumber && n > 0:
		r.Number = n
	case r.Session != "":
		d.expected(v, "a whole number of at least 1, higher than that of the request before: this request is in a session")
	case isText && 0 < len(text) && utf8.RuneCount(text) <= MaxRequestID:
		r.RequestID = string(text)
	case !isText && isNumber:
		r.RequestID = string(text)
	default:
		d.expected(v, fmt.Sprintf("a string of 1 to %d characters", MaxRequestID))
	}
	d.r.Has |= HasRequest
}
