package subjects

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

// decodeOf decodes a body that must be accepted.
func decodeOf(t *testing.T, op Op, body string) Request {
	t.Helper()
	var r Request
	if refusal := r.Decode(op, []byte(body)); refusal != nil {
		t.Fatalf("%s %s: %v (field %q)", op, body, refusal, refusal.Field)
	}
	return r
}

// Every field that the protocol's table of operations names is read.
func TestDecodeFields(t *testing.T) {
	tests := []struct {
		body string
		want Request
	}{
		{`{"name":"orders/4711"}`, Request{Op: OpAcquire, Name: "orders/4711", Take: 1}},
		{`{"name64":"/wA="}`, Request{Op: OpAcquire, Name: "\xff\x00", Take: 1}},
		{`{"name":"a","request":"r-1","mode":"shared","kind":"static","ttl":"1m30s","wait":"0s","acks":"majority"}`,
			Request{Op: OpAcquire, Has: HasRequest | HasTTL | HasWait, Name: "a", RequestID: "r-1", Mode: Shared, Kind: Static,
				TTL: 90 * time.Second, Acks: AcksMajority, Take: 1}},
		{`{"name":"a","session":"S","request":17,"done":15,"kind":"connection","grace":"0s","enqueue":true,"recall":true}`,
			Request{Op: OpAcquire, Has: HasRequest | HasGrace, Name: "a", Session: "S", Number: 17, Done: 15, Kind: Connection,
				Enqueue: true, Recall: true, Take: 1}},
		{`{"name":"a","mode":"semaphore","slots":5,"take":2}`,
			Request{Op: OpAcquire, Name: "a", Mode: Semaphore, Slots: 5, Take: 2}},
		{`{"name":"a","mode":"semaphore","slots":5}`,
			Request{Op: OpAcquire, Name: "a", Mode: Semaphore, Slots: 5, Take: 1}},
		{`{"name":"a","drain":"timed","quiet":"5s","holder":"Ann","data":{"x":[1, null]}}`,
			Request{Op: OpAcquire, Has: HasData, Name: "a", Drain: Timed, Quiet: 5 * time.Second, Holder: "Ann",
				Data: []byte(`{"x":[1, null]}`), Take: 1}},
		{`{"name":"a","drain":"soft","data":"text\n","acks":"all"}`,
			Request{Op: OpAcquire, Has: HasData, Name: "a", Drain: Soft, Data: []byte(`"text\n"`), Acks: AcksAll, Take: 1}},
		{`{"name":"a","key":"0123456789ABCDEF","outcome":"done"}`,
			Request{Op: OpRelease, Has: HasKey, Name: "a", Key: 0x0123456789abcdef, Outcome: "done"}},
		{`{"name":"a","key":"0123456789abcdef","ttl":"0s","data":null}`,
			Request{Op: OpRenew, Has: HasKey | HasTTL | HasData, Name: "a", Key: 0x0123456789abcdef, Data: []byte("null")}},
		{`{"name":"a","request":"r-1"}`, Request{Op: OpCancel, Has: HasRequest, Name: "a", RequestID: "r-1"}},
		{`{"name":"a","session":"S","request":7,"token":9}`,
			Request{Op: OpCancel, Has: HasRequest | HasToken, Name: "a", Session: "S", Number: 7, Token: 9}},
		{`{"name":"a"}`, Request{Op: OpQuery, Name: "a"}},
		{`{"prefix":"ord","older_than":"1h","state":"waited","limit":1000,"after":"x"}`,
			Request{Op: OpList, Has: HasPrefix, Prefix: "ord", OlderThan: time.Hour, State: Waited, Limit: 1000, After: "x"}},
		{`{"prefix64":"/w==","state":"held"}`, Request{Op: OpList, Has: HasPrefix, Prefix: "\xff", State: Held, Limit: 100}},
		{`{"name":"a","token":9007199254740991,"reason":"stuck","now":true}`,
			Request{Op: OpForce, Has: HasToken, Name: "a", Token: MaxToken, Reason: "stuck", Now: true}},
		{`{"name":"a","token":0}`, Request{Op: OpCheck, Has: HasToken, Name: "a"}},
		{`{"name":"a","receipt":"R","token":7,"key":"0000000000000001","epoch":3,"mode":"semaphore","slots":2,"take":2,` +
			`"kind":"static","session":"S","user":"U1","ttl":"30s"}`,
			Request{Op: OpReclaim, Has: HasToken | HasKey | HasTTL, Name: "a", Session: "S", Receipt: "R", Token: 7, Key: 1, Epoch: 3,
				Mode: Semaphore, Slots: 2, Take: 2, Kind: Static, User: "U1", TTL: 30 * time.Second}},
		{`{"secret":"x","ttl":"30s","location":"eu/fra","name":"my client","server":"NABC","cid":5}`,
			Request{Op: OpSessionOpen, Has: HasTTL, Secret: "x", TTL: 30 * time.Second, Location: "eu/fra", Holder: "my client",
				Server: "NABC", CID: 5}},
		{`{"session":"S","request":3}`, Request{Op: OpSessionClose, Has: HasRequest, Session: "S", Number: 3}},
		{`{"session":"S","beat":18446744073709551615}`, Request{Op: OpKeep, Session: "S", Beat: 1<<64 - 1}},
		{`{}`, Request{Op: OpInfo}},
		{``, Request{Op: OpInfo}},
		{`{"location":"eu"}`, Request{Op: OpServers, Location: "eu"}},
		{`{"node":"N1"}`, Request{Op: OpPing, Node: "N1"}},
		{`{}`, Request{Op: OpCluster}},
		{`{"buckets":"7"}`, Request{Op: OpCluster, Has: HasBuckets, FirstBucket: 7, LastBucket: 7}},
		{`{"buckets":"16-31"}`, Request{Op: OpCluster, Has: HasBuckets, FirstBucket: 16, LastBucket: 31}},
	}
	for _, test := range tests {
		got := decodeOf(t, test.want.Op, test.body)
		if !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s %s\n got %+v\nwant %+v", test.want.Op, test.body, got, test.want)
		}
	}
}

// The ways in which one value may be written.
func TestDecodeSpellings(t *testing.T) {
	name := func(body string) string { r := decodeOf(t, OpQuery, body); return r.Name }
	for body, want := range map[string]string{
		"\r\n\t {  \"name\" :\t\"a\" }\n":                           "a",
		`{"n\u0061me":"a"}`:                                         "a",
		`{"name":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00é😀"}`:           "\"\\/\b\f\n\r\té😀é😀",
		`{"name":"\u0000"}`:                                         "\x00",
		`{"name":"\ufffd"}`:                                         "\ufffd",
		`{"name":"a","x":{"y":[1,-2.5e+10,0,true,false,null,{}]}}`:  "a",
		`{"x":{"name":"no","name":"matter"},"name":"a","x":1,"":2}`: "a", // what is not known is passed over
		`{"name":"a","mode":5,"token":"x","granted":true}`:          "a", // another operation's fields are not known here
	} {
		if got := name(body); got != want {
			t.Errorf("%s: name %q, want %q", body, got, want)
		}
	}

	// "request: idempotency id, up to 64 characters; in a session a number"
	for body, want := range map[string]string{
		`{"name":"a","request":17}`:                                     "17",
		`{"name":"a","request":"` + strings.Repeat("é", 64) + `"}`:      strings.Repeat("é", 64),
		`{"name":"a","request":"0"}`:                                    "0",
		`{"request":"18446744073709551616","name":"a"}`:                 "18446744073709551616",
		`{"request":18446744073709551615,"name":"a","require":["ttl"]}`: "18446744073709551615",
	} {
		if got := decodeOf(t, OpAcquire, body); got.RequestID != want || got.Number != 0 {
			t.Errorf("%s: %q, %d; want %q", body, got.RequestID, got.Number, want)
		}
	}
	for _, body := range []string{`{"name":"a","request":17,"session":"S"}`, `{"name":"a","session":"S","request":"17"}`} {
		if got := decodeOf(t, OpAcquire, body); got.RequestID != "" || got.Number != 17 {
			t.Errorf("%s: %q, %d; want number 17", body, got.RequestID, got.Number)
		}
	}

	// "durations are strings"
	for text, want := range map[string]time.Duration{
		"30s": 30 * time.Second, "1m30s": 90 * time.Second, "0s": 0, "0": 0, "1.5h": 90 * time.Minute, "250ms": 250 * time.Millisecond,
		"0.35ms": 350 * time.Microsecond, "12us": 12 * time.Microsecond, "8784h": MaxTTL,
	} {
		if got := decodeOf(t, OpAcquire, `{"name":"a","ttl":"`+text+`"}`); got.TTL != want || got.Has != HasTTL {
			t.Errorf("ttl %s: %v, %b; want %v", text, got.TTL, got.Has, want)
		}
	}
}

// Decode overwrites what was there, so that a Request can be used again.
func TestDecodeOverwrites(t *testing.T) {
	r := decodeOf(t, OpAcquire, `{"name":"a","session":"S","request":1,"data":{},"grace":"1s","mode":"semaphore","slots":3}`)
	if refusal := r.Decode(OpQuery, []byte(`{"name":"b"}`)); refusal != nil {
		t.Fatal(refusal)
	}
	if want := (Request{Op: OpQuery, Name: "b"}); !reflect.DeepEqual(r, want) {
		t.Errorf("got %+v", r)
	}
}

// The caller may use the body's memory again.
func TestDecodeKeepsNoReference(t *testing.T) {
	body := []byte(`{"name":"name","session":"session","holder":"holder","data":{"a":1},"request":1}`)
	var r Request
	if refusal := r.Decode(OpAcquire, body); refusal != nil {
		t.Fatal(refusal)
	}
	clear(body)
	if r.Name != "name" || r.Session != "session" || r.Holder != "holder" || string(r.Data) != `{"a":1}` {
		t.Errorf("got %+v", r)
	}
}

// Only the strings that are kept are allocated: the name and the session.
func TestDecodeAllocations(t *testing.T) {
	var r Request
	for op, body := range map[Op][]byte{OpAcquire: []byte(benchAcquire), OpRelease: []byte(benchRelease)} {
		allocs := testing.AllocsPerRun(100, func() {
			if refusal := r.Decode(op, body); refusal != nil {
				t.Error(refusal)
			}
		})
		if allocs > 2 {
			t.Errorf("%s: %v allocations, want 2", op, allocs)
		}
	}
	if body := []byte(`{"name":"short"}`); testing.AllocsPerRun(100, func() { r.Decode(OpQuery, body) }) > 1 {
		t.Error("query: more than the name is allocated")
	}
}

// "On the simple path a body whose first non-blank byte is not { is the name itself, and headers can carry the options."
func TestDecodeSimple(t *testing.T) {
	tests := []struct {
		body    string
		headers map[string][]string
		want    Request
	}{
		{"orders/4711", nil, Request{Op: OpAcquire, Name: "orders/4711", Take: 1}},
		{" a\xff\x00\n", nil, Request{Op: OpAcquire, Name: " a\xff\x00\n", Take: 1}}, // verbatim
		{`"a"`, nil, Request{Op: OpAcquire, Name: `"a"`, Take: 1}},
		{"\n", nil, Request{Op: OpAcquire, Name: "\n", Take: 1}},
		{" {\"name\":\"a\"}", nil, Request{Op: OpAcquire, Name: "a", Take: 1}},
		{`{"name":"a"}`, map[string][]string{"Oclocks-Ttl": {"x"}}, Request{Op: OpAcquire, Name: "a", Take: 1}}, // ignored
		{"a", map[string][]string{"Oclocks-Ttl": {"30s"}, "oclocks-wait": {" 10s "}, "Other": {"x"}, "Oclocks-": {"x"}},
			Request{Op: OpAcquire, Has: HasTTL | HasWait, Name: "a", TTL: 30 * time.Second, Wait: 10 * time.Second, Take: 1}},
		{"a", map[string][]string{"OCLOCKS-MODE": {"semaphore"}, "Oclocks-Slots": {"3"}, "Oclocks-Data": {`{"x": "y"}`},
			"Oclocks-Holder": {"Ann"}, "Oclocks-Require": {"ttl, mode"}},
			Request{Op: OpAcquire, Has: HasData, Name: "a", Mode: Semaphore, Slots: 3, Take: 1, Data: []byte(`{"x": "y"}`), Holder: "Ann"}},
		{"a", map[string][]string{"Oclocks-Session": {"S"}, "Oclocks-Request": {"7"}, "Oclocks-Enqueue": {"true"}},
			Request{Op: OpAcquire, Has: HasRequest, Name: "a", Session: "S", Number: 7, Enqueue: true, Take: 1}},
		{"a", map[string][]string{"Oclocks-Request": {"7"}, "Oclocks-Unheard-Of": {"x", "y"}},
			Request{Op: OpAcquire, Has: HasRequest, Name: "a", RequestID: "7", Take: 1}},
		{"a", map[string][]string{"Oclocks-Key": {"0123456789abcdef"}},
			Request{Op: OpRelease, Has: HasKey, Name: "a", Key: 0x0123456789abcdef}},
		{"", map[string][]string{"Oclocks-Older-Than": {"1h"}, "Oclocks-Prefix": {"ord"}, "Oclocks-Limit": {"5"}},
			Request{Op: OpList, Has: HasPrefix, OlderThan: time.Hour, Prefix: "ord", Limit: 5}},
		{" \n", nil, Request{Op: OpInfo}},
		{"", map[string][]string{"Oclocks-Name": {"me"}}, Request{Op: OpSessionOpen, Holder: "me"}},
		{"", map[string][]string{"Oclocks-Older_than": {"1h"}}, Request{Op: OpList, OlderThan: time.Hour, Limit: 100}},
	}
	for _, test := range tests {
		var got Request
		refusal := got.DecodeSimple(test.want.Op, []byte(test.body), test.headers)
		if refusal != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s %q %v\n got %+v, %v\nwant %+v", test.want.Op, test.body, test.headers, got, refusal, test.want)
		}
	}
}

// A whole grant can be sent back as the body of what is done with the lock next.
func TestDecodeGrantAsRequest(t *testing.T) {
	body := string(benchGrant().AppendJSON(nil))
	if !json.Valid([]byte(body)) {
		t.Fatalf("%s is not JSON", body)
	}
	for _, op := range []Op{OpRelease, OpRenew, OpQuery, OpForce, OpCheck, OpReclaim} {
		if r := decodeOf(t, op, body); r.Name != "orders/4711" {
			t.Errorf("%s: name %q", op, r.Name)
		}
	}
}
