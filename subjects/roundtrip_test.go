package subjects

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// message is a Body that can be read back.
type message interface {
	Body
	DecodeJSON(b []byte) error
}

// empty makes an empty message of the type of m.
func empty(m any) message {
	return reflect.New(reflect.TypeOf(m).Elem()).Interface().(message)
}

func TestGoldenDecode(t *testing.T) {
	for _, g := range golden {
		got := empty(g.body)
		if err := got.DecodeJSON([]byte(g.want)); err != nil {
			t.Errorf("%s: %v", g.want, err)
			continue
		}
		if text := string(got.AppendJSON(nil)); text != g.want {
			t.Errorf("decoded and encoded again\n got %s\nwant %s", text, g.want)
		}
	}
}

// What any message's encoding is read back as is the message itself.
func TestRoundTrip(t *testing.T) {
	for name, generator := range map[string]*rapid.Generator[message]{
		"grant": asMessage(genGrant), "released": asMessage(genReleased), "queued": asMessage(genQueued),
		"cancelled": asMessage(genCancelled), "forced": asMessage(genForced), "checked": asMessage(genChecked),
		"record": asMessage(genRecord), "page": asMessage(genPage), "opened": asMessage(genOpened),
		"closed": asMessage(genClosed), "kept": asMessage(genKept), "info": asMessage(genInfo), "servers": asMessage(genServers),
		"pong": asMessage(genPong), "refusal": asMessage(genRefusal), "session event": asMessage(genSessionEvent),
		"lock event": asMessage(genLockEvent), "server event": asMessage(genServerEvent),
	} {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				want := generator.Draw(t, "message")
				text := want.AppendJSON(nil)
				if !json.Valid(text) {
					t.Fatalf("%s is not valid JSON", text)
				}
				got := empty(want)
				if err := got.DecodeJSON(text); err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("%s\n got %+v\nwant %+v", text, got, want)
				}
				_, refused := DecodeRefusal(text)
				if _, isRefusal := want.(*Refusal); isRefusal != refused && name != "session event" {
					t.Fatalf("%s: DecodeRefusal says %v", text, refused)
				}
			})
		})
	}
}

// A message is not taken for another one, nor broken JSON for any.
func TestDecodeJSONRefuses(t *testing.T) {
	refusal := (&Refusal{Code: 404, Reason: ReasonNotHeld, Message: "m"}).AppendJSON(nil)
	for _, g := range golden {
		bodies := []string{"", "{}", "[]", "null", `"x"`, g.want + "x", g.want[:len(g.want)-1], `{"name":"\ud800"}`}
		if _, ok := g.body.(*Refusal); !ok {
			if _, ok := g.body.(*SessionEvent); !ok {
				bodies = append(bodies, string(refusal))
			}
		}
		for _, body := range bodies {
			if err := empty(g.body).DecodeJSON([]byte(body)); !errors.Is(err, ErrBody) {
				t.Errorf("%T, %s: %v; want ErrBody", g.body, body, err)
			}
		}
	}
	for _, body := range []string{
		`{"granted":1}`, `{"granted":true,"token":"7"}`, `{"granted":true,"key":7}`, `{"granted":true,"lease":"x"}`,
		`{"granted":true,"mode":"odd"}`, `{"granted":true,"bucket":4294967296}`, `{"granted":true,"name":null}`, `{"granted":false}`,
	} {
		if err := new(Grant).DecodeJSON([]byte(body)); !errors.Is(err, ErrBody) {
			t.Errorf("%s: %v; want ErrBody", body, err)
		}
	}
	for _, body := range []string{
		`{"locks":{}}`, `{"locks":[1]}`, `{"locks":[{}]}`, `{"locks":[{"name":"a","holders":[{"since":"now"}]}]}`,
		`{"locks":[{"name":"a","queue":[[]]}]}`, `{"locks":[{"name":"a","holders":[{"since":"1969-12-31T23:59:59Z"}]}]}`,
	} {
		if err := new(Page).DecodeJSON([]byte(body)); !errors.Is(err, ErrBody) {
			t.Errorf("%s: %v; want ErrBody", body, err)
		}
	}
}

// Fields that a newer broker adds are passed over.
func TestDecodeJSONUnknownFields(t *testing.T) {
	for _, g := range golden {
		body := `{"newer":[{"x":"\u00e9"}],` + g.want[1:]
		got := empty(g.body)
		if err := got.DecodeJSON([]byte(body)); err != nil {
			t.Errorf("%s: %v", body, err)
		} else if text := string(got.AppendJSON(nil)); text != g.want {
			t.Errorf("%s: got %s", body, text)
		}
	}
}

func TestDecodeJSONAllocations(t *testing.T) {
	body := benchGrant().AppendJSON(nil)
	var g Grant
	allocs := testing.AllocsPerRun(100, func() {
		if err := g.DecodeJSON(body); err != nil {
			t.Error(err)
		}
	})
	if allocs > 3 { // name, node, receipt
		t.Errorf("%v allocations, want 3", allocs)
	}
	if allocs := testing.AllocsPerRun(100, func() { DecodeRefusal(body) }); allocs > 0 {
		t.Errorf("DecodeRefusal: %v allocations for a grant, want none", allocs)
	}
}

// What a client encodes is decoded as the same request.
func TestRequestRoundTrip(t *testing.T) {
	for op := OpAcquire; op < opCount; op++ {
		t.Run(op.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				want := genRequest(t, op)
				text := want.AppendJSON(nil)
				var got Request
				if refusal := got.Decode(op, text); refusal != nil {
					t.Fatalf("%s: %v", text, refusal)
				}
				if !reflect.DeepEqual(got, want) {
					t.Fatalf("%s\n got %+v\nwant %+v", text, got, want)
				}
			})
		})
	}
}

// Durations are exact to the nanosecond on the wire.
func TestDurationRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := time.Duration(rapid.Int64Min(0).Draw(t, "d"))
		text := appendDuration(nil, want)
		if got, ok := parseDuration(text); !ok || got != want {
			t.Fatalf("%d is written %s, read %d", want, text, got)
		}
	})
}

// parseDuration takes what Go takes, but nothing negative.
func TestParseDurationAsGo(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringMatching(`-?[0-9]{0,9}(\.[0-9]{0,3})?(ns|us|ms|s|m|h|x)?([0-9]{1,2}s)?`), rapid.String()).Draw(t, "text")
		want, err := time.ParseDuration(text)
		ok := err == nil && want >= 0 && text[0] != '-' && len(text) <= maxDurationText
		got, gotOK := parseDuration([]byte(text))
		if gotOK != ok || ok && got != want {
			t.Fatalf("%q: got %v, %v; want %v, %v", text, got, gotOK, want, ok)
		}
	})
}
