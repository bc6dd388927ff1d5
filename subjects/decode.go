package subjects

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Decode reads the body of a request strictly and wholly, as JSON. It overwrites all of r; r keeps no reference to body. The text of a
// session that is in r is used again if the body has the same.
// An empty body stands for an object without fields. If the answer is a Refusal, r must not be used.
//
// The fields that the operation does not know are passed over, but checked to be JSON. A field that it knows must be
// there once, have the right type and be within the limits, and the fields must go together.
func (r *Request) Decode(op Op, body []byte) *Refusal { return r.DecodeWith(nil, op, body) }

// DecodeWith is Decode that makes the name and the text of the session with texts: whoever keeps them for longer than the request makes
// copies.
func (r *Request) DecodeWith(texts *Texts, op Op, body []byte) *Refusal {
	d := decoder{r: r, known: op, texts: texts}
	if !d.begin(body) {
		return d.refusal
	}
	if len(body) > 0 {
		d.object(body)
	}
	return d.finish()
}

// DecodeSimple reads a request of the simple path: as Decode does if the first byte of body that is not blank is a brace.
// Otherwise the whole body is the lock's name, or is empty for an operation that has none, and the headers
// Oclocks-<Field> carry the other fields. The headers of a request whose body is JSON are ignored.
func (r *Request) DecodeSimple(op Op, body []byte, headers map[string][]string) *Refusal {
	text := bytes.TrimLeft(body, blanks)
	if len(text) > 0 && text[0] == '{' {
		return r.Decode(op, body)
	}
	d := decoder{r: r, known: op}
	if !d.begin(body) {
		return d.refusal
	}
	switch {
	case op.OnName() && len(body) > 0:
		d.raw(body)
	case op.OnName():
		d.checkName()
	case len(text) > 0:
		d.refuse(fieldNone, op.String()+" is not about one lock: send an empty body, or a JSON object with its fields")
	}
	d.headers(headers)
	return d.finish()
}

// decoder fills one Request. The first refusal sticks; nothing is decoded after it.
type decoder struct {
	r       *Request
	known   Op
	session string // that was there before
	texts   *Texts // for what lives no longer than the request; nil: each is its own
	seen    fieldSet
	field   field // the one that is being read, for refusals
	request value // resolved when it is known whether there is a session
	refusal *Refusal
}

// begin resets the request. It is false if the request can be refused as it is.
func (d *decoder) begin(body []byte) bool {
	d.session = d.r.Session
	*d.r = Request{Op: d.known}
	if d.known.String() == "" {
		d.refusal = unsupported("", "there is no such operation")
	} else if len(body) > MaxBody {
		d.refusal = tooLarge(fieldNone, fmt.Sprintf("the body has %d bytes; send %d at most", len(body), MaxBody))
	}
	return d.refusal == nil
}

// object decodes a body of JSON.
func (d *decoder) object(body []byte) {
	s := scanObject(body, requestDepth)
	for s.next() {
		f := d.known.field(s.key)
		if f == fieldNone {
			continue
		}
		if d.set(f, s.val); d.refusal != nil {
			return
		}
	}
	if s.err != nil {
		d.refuse(d.known.field(s.key), "the body is not a valid JSON object: "+s.err.Error())
	}
}

// raw takes a whole body for the lock's name.
func (d *decoder) raw(body []byte) {
	d.seen |= setOf(fieldName)
	d.field = fieldName
	d.setName(body)
}

// headers decodes what is in the headers Oclocks-<Field>, in the order of their names.
func (d *decoder) headers(headers map[string][]string) {
	if len(headers) == 0 {
		return
	}
	for _, header := range slices.Sorted(maps.Keys(headers)) {
		f := d.known.headerField(header)
		for _, text := range headers[header] {
			if f == fieldNone || d.refusal != nil {
				break
			}
			text = strings.Trim(text, " \t")
			if !utf8.ValidString(text) {
				d.refuse(f, f.String()+" is not valid UTF-8 in its header")
				return
			}
			d.set(f, headerValue(f, text))
		}
	}
}

// headerValue makes a value of a header's text. Data is JSON there too, and has kindNone if it is not.
func headerValue(f field, text string) value {
	v := value{kind: kindText, raw: []byte(text)}
	if f != fieldData {
		return v
	}
	s := scanArray([]byte("["+text+"]"), requestDepth)
	if !s.next() {
		return value{}
	}
	v = s.val
	if s.next() || s.err != nil {
		return value{}
	}
	return v
}

// set decodes one field.
func (d *decoder) set(f field, v value) {
	if d.refusal != nil {
		return
	}
	if d.seen.has(f) {
		d.refuse(f, f.String()+" is there twice; send it once")
		return
	}
	d.seen |= 1 << f
	d.field = f
	switch r := d.r; f {
	case fieldName, fieldName64, fieldPrefix, fieldPrefix64:
		d.setBytes(v)
	case fieldRequest:
		d.request = v
	case fieldRequire:
		d.setRequire(v)
	case fieldData:
		d.setData(v)
	case fieldMode, fieldKind, fieldDrain, fieldAcks, fieldState:
		d.setWord(v)
	case fieldEnqueue:
		r.Enqueue = d.bool(v)
	case fieldRecall:
		r.Recall = d.bool(v)
	case fieldNow:
		r.Now = d.bool(v)
	case fieldTrusted:
		r.Trusted = d.bool(v)
	case fieldTTL, fieldGrace, fieldWait, fieldQuiet, fieldOlderThan:
		d.setDuration(v)
	case fieldKey:
		d.setKey(v)
	case fieldBuckets:
		d.setBuckets(v)
	case fieldSlots, fieldTake, fieldLimit, fieldToken, fieldDone, fieldCID, fieldBeat, fieldEpoch:
		d.setNumber(v)
	default:
		d.setString(v)
	}
}

// setNumber decodes a whole number.
func (d *decoder) setNumber(v value) {
	switch r := d.r; d.field {
	case fieldSlots:
		r.Slots = uint32(d.uint(v, 1, MaxSlots))
	case fieldTake:
		r.Take = uint32(d.uint(v, 1, MaxSlots))
	case fieldLimit:
		r.Limit = uint32(d.uint(v, 1, MaxListLimit))
	case fieldToken:
		r.Token = d.uint(v, 0, MaxToken)
		r.Has |= HasToken
	case fieldDone:
		r.Done = d.uint(v, 0, maxUint)
	case fieldCID:
		r.CID = d.uint(v, 0, maxUint)
	case fieldBeat:
		r.Beat = d.uint(v, 0, maxUint)
	case fieldEpoch:
		r.Epoch = d.uint(v, 0, maxUint)
	}
}

// setDuration decodes a duration.
func (d *decoder) setDuration(v value) {
	switch r := d.r; d.field {
	case fieldTTL:
		r.TTL = d.duration(v, MaxTTL)
		r.Has |= HasTTL
	case fieldGrace:
		r.Grace = d.duration(v, MaxTTL)
		r.Has |= HasGrace
	case fieldWait:
		r.Wait = d.duration(v, MaxWait)
		r.Has |= HasWait
	case fieldQuiet:
		r.Quiet = d.duration(v, MaxQuiet)
	case fieldOlderThan:
		r.OlderThan = d.duration(v, maxDuration)
	}
}

// setWord decodes one of a few words.
func (d *decoder) setWord(v value) {
	switch r := d.r; d.field {
	case fieldMode:
		r.Mode = Mode(d.word(v, modeWords))
	case fieldKind:
		r.Kind = Kind(d.word(v, kindWords))
	case fieldDrain:
		r.Drain = Drain(d.word(v, drainWords))
	case fieldAcks:
		r.Acks = Acks(d.word(v, acksWords))
	case fieldState:
		r.State = State(d.word(v, stateWords))
	}
}

// setString decodes a string that is not a name.
func (d *decoder) setString(v value) {
	switch r := d.r; d.field {
	case fieldSession:
		if text, ok := v.text(); ok && d.session != "" && string(text) == d.session {
			r.Session = d.session
			return
		}
		r.Session = d.textIn(d.texts, v, 1, MaxOpaque)
	case fieldHolder:
		r.Holder = d.text(v, 0, MaxHolder)
	case fieldOutcome:
		r.Outcome = d.text(v, 0, MaxText)
	case fieldReason:
		r.Reason = d.text(v, 0, MaxText)
	case fieldLocation:
		r.Location = d.text(v, 0, MaxLocation)
	case fieldAfter:
		r.After = d.text(v, 0, MaxAfter)
	case fieldSecret:
		r.Secret = d.text(v, 1, MaxOpaque)
	case fieldServer:
		r.Server = d.text(v, 1, MaxOpaque)
	case fieldReceipt:
		r.Receipt = d.text(v, 1, MaxOpaque)
	case fieldUser:
		r.User = d.text(v, 1, MaxOpaque)
	case fieldNode:
		r.Node = d.text(v, 1, MaxOpaque)
		if d.refusal == nil && !ValidToken(r.Node) {
			d.refuse(d.field, "node is not a node's identifier; send the one that a grant or locks.servers tells")
		}
	}
}
