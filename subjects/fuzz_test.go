package subjects

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzDecode compares with encoding/json: what it does not take for an object in UTF-8 is refused, and nothing else is
// refused as not being one. What is accepted is within the limits and means the same when it is encoded again.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{
		benchAcquire, benchRelease, string(benchGrant().AppendJSON(nil)), ``, `{}`, `{"name":"a","name":"b"}`, `{"name64":"/wA="}`,
		`{"name":"\ud83d\ude00\ud800"}`, `{"name":"a","mode":"semaphore","slots":5,"take":2,"data":{"x":[1,-2.5e+10,null]}}`,
		`{"name":"a","drain":"timed","quiet":"5s","require":["quiet","x"]}`, `{"prefix64":"/w==","older_than":"1.5h","limit":7}`,
		"{\"name\":\"a\xff\"}", `{"name":"a"}}`, `{"name":"a","x":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]`, `{"name":"a","request":1e3}`,
		`{"secret":"x","server":"N","cid":5,"name":"me"}`, `{"session":"S","beat":3,"request":"18"}`, `{"name":"a","x":1e999}`,
	} {
		for _, op := range []Op{OpAcquire, OpRelease, OpReclaim, OpList, OpSessionOpen} {
			f.Add(uint8(op), []byte(body), "Ttl", "30s")
		}
	}
	f.Add(uint8(OpAcquire), []byte("orders/4711"), "Data", `{"x":1}`)
	f.Add(uint8(OpAcquire), []byte("\xff\x00"), "Require", `acks,,x`)
	f.Add(uint8(OpList), []byte(" \n"), "Older-Than", "1h")
	f.Fuzz(func(t *testing.T, opNumber uint8, body []byte, header, text string) {
		op := Op(opNumber % uint8(opCount+1))
		var r Request
		refusal := r.Decode(op, body)
		if refusal == nil {
			if len(body) > 0 && !validBody(body) {
				t.Fatalf("%s: %q is accepted", op, body)
			}
			checkName(t, &r, body)
			checkAccepted(t, &r)
		} else {
			checkRefused(t, refusal)
			if notJSON := strings.HasPrefix(refusal.Message, "the body is not a valid JSON"); notJSON && validBody(body) {
				t.Fatalf("%s: %q is refused: %v", op, body, refusal)
			}
		}

		if refusal = r.DecodeSimple(op, body, map[string][]string{"Oclocks-" + header: {text}}); refusal == nil {
			checkAccepted(t, &r)
		} else {
			checkRefused(t, refusal)
		}
	})
}

// validBody says whether encoding/json takes body for an object, and it is UTF-8 without lone surrogates and not too deep.
func validBody(body []byte) bool {
	var object map[string]json.RawMessage
	if !utf8.Valid(body) || json.Unmarshal(body, &object) != nil || object == nil {
		return false
	}
	return !loneSurrogate(body) && !deeper(body, requestDepth)
}

// loneSurrogate says whether valid JSON has an escape that is half of a pair: encoding/json reads U+FFFD for it.
func loneSurrogate(body []byte) bool {
	replaced := func(text []byte) int {
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		n := 0
		for {
			token, err := d.Token()
			if err != nil {
				return n
			}
			if s, ok := token.(string); ok {
				n += strings.Count(s, "\ufffd")
			}
		}
	}
	// Make the replacement characters that are meant harmless, whichever way they are written, then count those left.
	meant := bytes.ReplaceAll(body, []byte(`\\`), []byte("xx"))
	for _, spelling := range []string{"\ufffd", `\ufffd`, `\uFFFD`, `\ufffD`, `\uffFd`, `\ufFfd`, `\uFffd`, `\uFFfd`, `\uFfFd`, `\uFffD`,
		`\ufFFd`, `\ufFfD`, `\uffFD`, `\uFFFd`, `\uFFfD`, `\uFfFD`, `\ufFFD`} {
		meant = bytes.ReplaceAll(meant, []byte(spelling), []byte("x"))
	}
	return replaced(meant) > 0
}

// deeper says whether valid JSON is nested more than limit deep.
func deeper(body []byte, limit int) bool {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	depth := 0
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth > limit {
			return true
		}
	}
}

// checkName compares the name with what encoding/json reads.
func checkName(t *testing.T, r *Request, body []byte) {
	if !r.Op.OnName() {
		return
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(body, &object); err != nil {
		t.Fatal(err)
	}
	var name string
	if raw, ok := object["name"]; ok && (json.Unmarshal(raw, &name) != nil || name != r.Name) {
		t.Fatalf("%q: name %q, want %q", body, r.Name, name)
	}
}

// checkAccepted checks the limits of an accepted request, and that it survives being encoded.
func checkAccepted(t *testing.T, r *Request) {
	if r.Op.OnName() != (r.Name != "") || len(r.Name) > MaxName || len(r.Data) > MaxData || len(r.Holder) > MaxHolder ||
		utf8.RuneCountInString(r.RequestID) > MaxRequestID || r.Token > MaxToken || r.Take > MaxSlots || r.Slots > MaxSlots ||
		r.Wait < 0 || r.Wait > MaxWait || r.TTL < 0 || r.TTL > MaxTTL || r.Quiet > MaxQuiet || r.Limit > MaxListLimit {
		t.Fatalf("out of the limits: %+v", r)
	}
	if (r.Has&HasRequest != 0) != (r.Number != 0 || r.RequestID != "") || r.Number != 0 && r.Session == "" {
		t.Fatalf("request id: %+v", r)
	}
	if r.Op == OpAcquire && (r.Take < 1 || r.Mode == Semaphore && r.Take > r.Slots) {
		t.Fatalf("take: %+v", r)
	}
	text := r.AppendJSON(nil)
	if len(text) > MaxBody { // the escapes of control characters can make it longer
		return
	}
	var again Request
	if refusal := again.Decode(r.Op, text); refusal != nil || !reflect.DeepEqual(&again, r) {
		t.Fatalf("%s: %v\n got %+v\nwant %+v", text, refusal, again, *r)
	}
}

// checkRefused checks that a refusal can be sent and read.
func checkRefused(t *testing.T, refusal *Refusal) {
	if refusal.Code != 400 && refusal.Code != 413 || refusal.Reason == "" || refusal.Message == "" {
		t.Fatalf("%+v", refusal)
	}
	body := refusal.AppendJSON(nil)
	if again, ok := DecodeRefusal(body); !ok || !reflect.DeepEqual(again, refusal) || len(body) > 2048 {
		t.Fatalf("%s is read as %+v", body, again)
	}
	if code, description := refusal.Headers(); code == "" || strings.ContainsAny(description, "\r\n\x00") || len(description) > 512 {
		t.Fatalf("headers %q, %q", code, description)
	}
}

// FuzzReplies reads arbitrary bytes as each message. What is accepted is JSON, and stable when encoded and read again.
func FuzzReplies(f *testing.F) {
	kinds := map[reflect.Type]bool{}
	messages := []message{}
	for _, g := range golden {
		f.Add([]byte(g.want))
		if kind := reflect.TypeOf(g.body); !kinds[kind] {
			kinds[kind] = true
			messages = append(messages, empty(g.body))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, m := range messages {
			if m.DecodeJSON(body) != nil {
				continue
			}
			if !json.Valid(body) || !utf8.Valid(body) {
				t.Fatalf("%T: %q is accepted", m, body)
			}
			text := m.AppendJSON(nil)
			if !json.Valid(text) {
				t.Fatalf("%T: %q is encoded as %q", m, body, text)
			}
			again := empty(m)
			if err := again.DecodeJSON(text); err != nil {
				t.Fatalf("%T: %q is encoded as %q: %v", m, body, text, err)
			}
			if twice := again.AppendJSON(nil); !bytes.Equal(twice, text) {
				t.Fatalf("%T: %q, then %q", m, text, twice)
			}
		}
		DecodeRefusal(body)
	})
}
