package subjects

import (
	"strconv"
	"strings"
)

// Names of the headers of a refusal, as in every NATS micro service.
const (
	HeaderErrorCode = "Nats-Service-Error-Code"
	HeaderError     = "Nats-Service-Error"
)

// Headers gives the values of HeaderErrorCode and HeaderError. The second is "reason: message" on one line.
func (r *Refusal) Headers() (code, description string) {
	const most = 512
	description = r.Reason
	if r.Message != "" {
		description += ": " + r.Message
	}
	if len(description) > most {
		description = description[:most]
	}
	description = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(description, ""))
	return strconv.Itoa(r.Code), strings.TrimSpace(description)
}

// AppendJSON implements Body.
func (r *Refusal) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"error":`...)
	return append(r.append(dst), '}')
}

// append writes what is below error.
func (r *Refusal) append(dst []byte) []byte {
	dst = append(dst, '{')
	dst = appendInt(dst, "code", r.Code)
	dst = appendText(dst, "reason", r.Reason)
	dst = appendText(dst, "message", r.Message)
	dst = optText(dst, "field", r.Field)
	dst = optText(dst, "why", r.Why)
	dst = optText(dst, "holder", r.Holder)
	if r.Since != 0 {
		dst = appendTime(dst, "since", r.Since)
	}
	if r.HasQueue {
		dst = appendInt(dst, "queue", r.Queue)
	}
	dst = optSpan(dst, "retry_after", r.RetryAfter)
	if r.Map != nil {
		dst = r.Map.append(appendKey(dst, "map"))
	}
	dst = optUint(dst, "above", r.Above)
	return append(dst, '}')
}

// DecodeJSON reads the body of a refusal.
func (r *Refusal) DecodeJSON(b []byte) error {
	*r = Refusal{}
	s := scanObject(b, replyDepth)
	for s.next() {
		if string(s.key) == "error" {
			s.adopt(r.decode(s.object()))
		}
	}
	return s.end(r.Code != 0, "a refusal")
}

// DecodeRefusal reads the body of a reply if it is a refusal; if ok is false it is something else, and r means nothing. A
// session's event that carries a refusal looks like one.
func DecodeRefusal(b []byte) (r *Refusal, ok bool) {
	s := scanObject(b, replyDepth)
	for s.next() {
		if string(s.key) == "error" {
			r = &Refusal{}
			err := r.DecodeJSON(b)
			return r, err == nil
		}
	}
	return nil, false
}

// decode reads what is below error.
func (r *Refusal) decode(b []byte) error {
	s := scanObject(b, replyDepth)
	for s.next() {
		switch string(s.key) {
		case "code":
			r.Code = s.int()
		case "reason":
			r.Reason = s.text()
		case "message":
			r.Message = s.text()
		case "field":
			r.Field = s.text()
		case "why":
			r.Why = s.text()
		case "holder":
			r.Holder = s.text()
		case "since":
			r.Since = s.time()
		case "queue":
			r.HasQueue = true
			r.Queue = s.int()
		case "retry_after":
			r.RetryAfter = s.span()
		case "map":
			r.Map = &Map{}
			s.adopt(r.Map.decode(s.object()))
		case "above":
			r.Above = s.uint()
		}
	}
	return s.err
}
