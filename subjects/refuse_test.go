package subjects

import (
	"fmt"
	"strings"
	"testing"
)

// Each sentence of the protocol about what is refused, with the code, the reason, the field and a part of the message.
func TestDecodeRefuses(t *testing.T) {
	long := strings.Repeat("x", 4097)
	tests := []struct {
		op      Op
		body    string
		want    string // "code reason field"
		message string
	}{
		// "Requests are JSON objects"; "A body that begins with { must parse."
		{OpQuery, `{`, "400 bad_request ", "not a valid JSON object"},
		{OpQuery, `{"name":"a"`, "400 bad_request ", "the text ends at byte 11"},
		{OpQuery, `{"name":"a"} x`, "400 bad_request ", "nothing was expected after the end at byte 13"},
		{OpQuery, `{"name":"a"}{}`, "400 bad_request ", "after the end"},
		{OpQuery, `{"name":"a",}`, "400 bad_request ", "a field's name"},
		{OpQuery, `{"name":"a" "b":1}`, "400 bad_request ", "a comma"},
		{OpQuery, `{"name" "a"}`, "400 bad_request ", "a colon"},
		{OpQuery, `{name:"a"}`, "400 bad_request ", "double quotes"},
		{OpQuery, `{"name":'a'}`, "400 bad_request name", "a value"},
		{OpQuery, `{"name":"a`, "400 bad_request name", "closing quote"},
		{OpQuery, `["name"]`, "400 bad_request ", "an object was expected"},
		{OpQuery, `"name"`, "400 bad_request ", "an object was expected"},
		{OpQuery, `orders/4711`, "400 bad_request ", "an object was expected"},
		{OpQuery, ` `, "400 bad_request ", "an object was expected"},
		{OpQuery, `{"name":"a","x":}`, "400 bad_request ", "a value"},
		{OpQuery, `{"name":"a","x":[1,]}`, "400 bad_request ", "a value"},
		{OpQuery, `{"name":"a","x":[1 2]}`, "400 bad_request ", "a comma"},
		{OpQuery, `{"name":"a","x":01}`, "400 bad_request ", "a comma"},
		{OpQuery, `{"name":"a","x":1.}`, "400 bad_request ", "a digit"},
		{OpQuery, `{"name":"a","x":1e}`, "400 bad_request ", "a digit"},
		{OpQuery, `{"name":"a","x":-}`, "400 bad_request ", "a value"},
		{OpQuery, `{"name":"a","x":nul}`, "400 bad_request ", "a value"},
		{OpQuery, `{"name":"a","x":{"y" 1}}`, "400 bad_request ", "a colon"},
		{OpQuery, `{"name":"a","x":` + strings.Repeat("[", 32) + strings.Repeat("]", 32) + `}`, "400 bad_request ", "too deep"},

		// "invalid UTF-8, a lone surrogate: 400", in fields that are not known too.
		{OpQuery, "{\"name\":\"a\xff\"}", "400 bad_request name", "UTF-8"},
		{OpQuery, "{\"name\":\"a\",\"x\":[\"\xc3\"]}", "400 bad_request ", "UTF-8"},
		{OpQuery, "{\"name\":\"a\",\"\xff\":1}", "400 bad_request ", "UTF-8"},
		{OpQuery, `{"name":"\ud800"}`, "400 bad_request name", "surrogates in pairs"},
		{OpQuery, `{"name":"\ud800\u0041"}`, "400 bad_request name", "surrogates in pairs"},
		{OpQuery, `{"name":"\udc00\ud800"}`, "400 bad_request name", "surrogates in pairs"},
		{OpAcquire, `{"name":"a","data":{"x":"\udfff"}}`, "400 bad_request data", "surrogates in pairs"},
		{OpQuery, `{"name":"\x"}`, "400 bad_request name", "a valid escape"},
		{OpQuery, `{"name":"\u12g4"}`, "400 bad_request name", "a valid escape"},
		{OpQuery, "{\"name\":\"a\nb\"}", "400 bad_request name", "control characters"},

		// "A field of the wrong type: 400."
		{OpQuery, `{"name":1}`, "400 bad_request name", "name is the number 1; send a string"},
		{OpQuery, `{"name":null}`, "400 bad_request name", "or leave the field out"},
		{OpQuery, `{"name":{}}`, "400 bad_request name", "name is an object; send a string"},
		{OpAcquire, `{"name":"a","ttl":30}`, "400 bad_request ttl", `send a duration such as "30s"`},
		{OpAcquire, `{"name":"a","ttl":"30"}`, "400 bad_request ttl", `ttl is "30"; send a duration`},
		{OpAcquire, `{"name":"a","mode":true}`, "400 bad_request mode", "send exclusive, shared, semaphore"},
		{OpAcquire, `{"name":"a","mode":"Shared"}`, "400 bad_request mode", "send exclusive, shared, semaphore"},
		{OpAcquire, `{"name":"a","kind":""}`, "400 bad_request kind", "send static, connection"},
		{OpAcquire, `{"name":"a","acks":"some"}`, "400 bad_request acks", "send first, majority, all"},
		{OpAcquire, `{"name":"a","drain":"gently"}`, "400 bad_request drain", "send hard, soft, timed"},
		{OpAcquire, `{"name":"a","session":"S","enqueue":"true"}`, "400 bad_request enqueue", "send true or false"},
		{OpAcquire, `{"name":"a","holder":["x"]}`, "400 bad_request holder", "send a string"},
		{OpAcquire, `{"name":"a","request":true}`, "400 bad_request request", "1 to 64 characters"},
		{OpForce, `{"name":"a","token":"7"}`, "400 bad_request token", "without quotes"},
		{OpForce, `{"name":"a","token":7,"now":1}`, "400 bad_request now", "send true or false"},
		{OpList, `{"state":"free"}`, "400 bad_request state", "send held, waited"},
		{OpSessionOpen, `{"name":5}`, "400 bad_request name", "send a string"},
		{OpQuery, `{"name":"a","require":"ttl"}`, "400 bad_request require", `such as ["acks"]`},
		{OpQuery, `{"name":"a","require":[1]}`, "400 bad_request require", `such as ["acks"]`},

		// "a field named there that the broker does not know is a 400 unsupported"
		{OpAcquire, `{"name":"a","require":["acks","colour"]}`, "400 unsupported colour", `no field "colour" of acquire`},
		{OpQuery, `{"name":"a","require":["acks"]}`, "400 unsupported acks", `no field "acks" of query`},
		{OpQuery, `{"name":"a","require":["` + long + `"]}`, "400 unsupported " + long[:64], "no field"},
		{OpNone, `{"name":"a"}`, "400 unsupported ", "no such operation"},
		{opCount, `{"name":"a"}`, "400 unsupported ", "no such operation"},

		// Each field once.
		{OpQuery, `{"name":"a","name":"a"}`, "400 bad_request name", "twice"},
		{OpQuery, `{"name":"a","n\u0061me":"b"}`, "400 bad_request name", "twice"},
		{OpAcquire, `{"name":"a","ttl":"1s","x":1,"ttl":"1s"}`, "400 bad_request ttl", "twice"},

		// "a lock's name is bytes, 1 to 4096 of them"; "name or name64"
		{OpAcquire, `{}`, "400 bad_request name", "name is missing; acquire needs the name of a lock"},
		{OpQuery, ``, "400 bad_request name", "name is missing"},
		{OpQuery, `{"name":""}`, "400 bad_request name", "empty"},
		{OpQuery, `{"name64":""}`, "400 bad_request name64", "empty"},
		{OpQuery, `{"name":"a","name64":"YQ=="}`, "400 bad_request name64", "send one of them"},
		{OpQuery, `{"name64":"YQ"}`, "400 bad_request name64", "with padding"},
		{OpQuery, `{"name64":"_wA="}`, "400 bad_request name64", "standard base64"},
		{OpQuery, `{"name64":"YQ==\n"}`, "400 bad_request name64", "line breaks"},
		{OpQuery, `{"name64":"YR=="}`, "400 bad_request name64", "standard base64"},
		{OpList, `{"prefix":"a","prefix64":"YQ=="}`, "400 bad_request prefix64", "send one of them"},

		// "413 too_large: name, data or queue over its limit"
		{OpQuery, `{"name":"` + long + `"}`, "413 too_large name", "4097 bytes; send 4096 at most"},
		{OpList, `{"prefix":"` + long + `"}`, "413 too_large prefix", "4096"},
		{OpAcquire, `{"name":"a","data":"` + strings.Repeat("x", 16383) + `"}`, "413 too_large data", "send 16384 at most"},
		{OpQuery, `{"name":"a","x":"` + strings.Repeat("x", 65536) + `"}`, "413 too_large ", "send 65536 at most"},

		// Texts have limits too.
		{OpAcquire, `{"name":"a","holder":"` + long[:257] + `"}`, "400 bad_request holder", "257 bytes; send 256 at most"},
		{OpRelease, `{"name":"a","outcome":"` + long[:1025] + `"}`, "400 bad_request outcome", "send 1024 at most"},
		{OpSessionOpen, `{"name":"` + long[:257] + `"}`, "400 bad_request name", "send 256 at most"},
		{OpSessionOpen, `{"secret":""}`, "400 bad_request secret", "is empty"},
		{OpPing, `{"node":"a.b"}`, "400 bad_request node", "identifier"},
		{OpCluster, `{"buckets":7}`, "400 bad_request buckets", "buckets"},
		{OpCluster, `{"buckets":"x"}`, "400 bad_request buckets", "16-31"},
		{OpCluster, `{"buckets":"-"}`, "400 bad_request buckets", "16-31"},
		{OpCluster, `{"buckets":"31-16"}`, "400 bad_request buckets", "16-31"},
		{OpCluster, `{"buckets":"0-1024"}`, "400 bad_request buckets", "1024"},
		{OpCluster, `{"buckets":"0-4294967296"}`, "400 bad_request buckets", "16-31"},
		{OpSessionOpen, `{"server":"N"}`, "400 bad_request server", "send both or none"},
		{OpSessionOpen, `{"cid":5}`, "400 bad_request server", "send both or none"},

		// "durations are strings", from nothing to the limits.
		{OpAcquire, `{"name":"a","ttl":"-1s"}`, "400 bad_request ttl", `from "0s"`},
		{OpAcquire, `{"name":"a","ttl":"8785h"}`, "400 bad_request ttl", `to "8784h"`},
		{OpAcquire, `{"name":"a","ttl":"9999999999999h"}`, "400 bad_request ttl", `send a duration`},
		{OpAcquire, `{"name":"a","ttl":"9999999h"}`, "400 bad_request ttl", `send a duration`},
		{OpAcquire, `{"name":"a","ttl":""}`, "400 bad_request ttl", `send a duration`},
		{OpAcquire, `{"name":"a","ttl":"` + long[:100] + `"}`, "400 bad_request ttl", `send a duration`},
		{OpAcquire, `{"name":"a","wait":"24h1ms"}`, "400 bad_request wait", `to "24h"`},
		{OpAcquire, `{"name":"a","drain":"timed","quiet":"1h1s"}`, "400 bad_request quiet", `to "1h"`},

		// Numbers are whole, and in their range.
		{OpForce, `{"name":"a","token":9007199254740992}`, "400 bad_request token", "to 9007199254740991"},
		{OpForce, `{"name":"a","token":-1}`, "400 bad_request token", "from 0"},
		{OpForce, `{"name":"a","token":1.0}`, "400 bad_request token", "whole number"},
		{OpForce, `{"name":"a","token":1e3}`, "400 bad_request token", "in digits"},
		{OpForce, `{"name":"a","token":18446744073709551616}`, "400 bad_request token", "whole number"},
		{OpList, `{"limit":0}`, "400 bad_request limit", "from 1 to 1000"},
		{OpList, `{"limit":1001}`, "400 bad_request limit", "from 1 to 1000"},

		// "in a session a number that rises with each request"
		{OpAcquire, `{"name":"a","session":"S","request":"r-1"}`, "400 bad_request request", "in a session"},
		{OpAcquire, `{"name":"a","session":"S","request":0}`, "400 bad_request request", "at least 1"},
		{OpAcquire, `{"name":"a","request":1.5,"session":"S"}`, "400 bad_request request", "in a session"},
		{OpAcquire, `{"name":"a","session":"S","request":"01"}`, "400 bad_request request", "in a session"},
		{OpAcquire, `{"name":"a","request":""}`, "400 bad_request request", "1 to 64 characters"},
		{OpAcquire, `{"name":"a","request":"` + strings.Repeat("é", 65) + `"}`, "400 bad_request request", "1 to 64 characters"},
		{OpAcquire, `{"name":"a","request":-1}`, "400 bad_request request", "1 to 64 characters"},
		{OpAcquire, `{"name":"a","session":""}`, "400 bad_request session", "empty"},
		// "and then done"
		{OpAcquire, `{"name":"a","done":3}`, "400 bad_request done", "together with session"},

		// "slots N and take n (semaphore)"
		{OpAcquire, `{"name":"a","mode":"semaphore"}`, "400 bad_request slots", "slots is missing"},
		{OpAcquire, `{"name":"a","mode":"semaphore","slots":0}`, "400 bad_request slots", "from 1 to 1000000"},
		{OpAcquire, `{"name":"a","mode":"semaphore","slots":1000001}`, "400 bad_request slots", "from 1 to 1000000"},
		{OpAcquire, `{"name":"a","mode":"semaphore","slots":2,"take":0}`, "400 bad_request take", "from 1"},
		{OpAcquire, `{"name":"a","take":3,"mode":"semaphore","slots":2}`, "400 bad_request take", "at most slots, which is 2"},
		{OpAcquire, `{"name":"a","slots":2}`, "400 bad_request slots", "mode is exclusive"},
		{OpAcquire, `{"name":"a","mode":"shared","take":1}`, "400 bad_request take", "mode is shared"},
		{OpReclaim, `{"name":"a","take":2,"receipt":"R","key":"0000000000000001","token":1}`, "400 bad_request take", "semaphore"},

		// "drain hard (default), soft, timed and quiet"
		{OpAcquire, `{"name":"a","mode":"shared","drain":"hard"}`, "400 bad_request drain", "mode is shared"},
		{OpAcquire, `{"name":"a","drain":"timed"}`, "400 bad_request quiet", "needs quiet"},
		{OpAcquire, `{"name":"a","drain":"timed","quiet":"0s"}`, "400 bad_request quiet", "more than"},
		{OpAcquire, `{"name":"a","drain":"soft","quiet":"1s"}`, "400 bad_request quiet", "timed"},
		{OpAcquire, `{"name":"a","quiet":"1s"}`, "400 bad_request quiet", "timed"},

		// "kind static (default without a session), connection (default with one)"
		{OpAcquire, `{"name":"a","kind":"connection"}`, "400 bad_request kind", "needs a session"},
		{OpAcquire, `{"name":"a","enqueue":true}`, "400 bad_request enqueue", "needs a session"},
		{OpAcquire, `{"name":"a","recall":true}`, "400 bad_request recall", "needs a session"},
		// "grace: how long a connection lock survives a closed connection"
		{OpAcquire, `{"name":"a","grace":"1s"}`, "400 bad_request grace", "locks of a session"},
		{OpAcquire, `{"name":"a","session":"S","kind":"static","grace":"1s"}`, "400 bad_request grace", "static"},

		// The request fields of the other operations.
		{OpRelease, `{"name":"a"}`, "400 bad_request key", "key is missing; release needs the unlock key"},
		{OpRelease, `{"key":"0123456789abcdef"}`, "400 bad_request name", "name is missing"},
		{OpRelease, `{"name":"a","key":"123"}`, "400 bad_request key", "key is a string; send the 16 hexadecimal digits"},
		{OpRelease, `{"name":"a","key":"0123456789abcdeg"}`, "400 bad_request key", "16 hexadecimal digits"},
		{OpRelease, `{"name":"a","key":123}`, "400 bad_request key", "16 hexadecimal digits"},
		{OpRenew, `{"name":"a"}`, "400 bad_request key", "renew needs the unlock key"},
		{OpCancel, `{"name":"a"}`, "400 bad_request request", "cancel needs the request of the acquire"},
		{OpForce, `{"name":"a"}`, "400 bad_request token", "force needs the fencing token"},
		{OpCheck, `{"name":"a"}`, "400 bad_request token", "check needs the fencing token"},
		{OpReclaim, `{"name":"a"}`, "400 bad_request receipt", "reclaim needs the receipt"},
		{OpSessionClose, `{}`, "400 bad_request session", "session-close needs the token of the session"},
		{OpKeep, `{"beat":1}`, "400 bad_request session", "keep needs the token of the session"},
	}
	for _, test := range tests {
		var r Request
		refusal := r.Decode(test.op, []byte(test.body))
		checkRefusal(t, fmt.Sprintf("%s %.60s", test.op, test.body), refusal, test.want, test.message)
	}
}

func TestDecodeSimpleRefuses(t *testing.T) {
	tests := []struct {
		op      Op
		body    string
		headers map[string][]string
		want    string
		message string
	}{
		{OpAcquire, "", nil, "400 bad_request name", "name is missing"},
		{OpAcquire, "", map[string][]string{"Oclocks-Name": {"a"}}, "400 bad_request name", "name is missing"},
		{OpAcquire, "a", map[string][]string{"Oclocks-Name": {"b"}}, "400 bad_request name", "twice"},
		{OpAcquire, "a", map[string][]string{"Oclocks-Name64": {"YQ=="}}, "400 bad_request name64", "send one of them"},
		{OpAcquire, "{", nil, "400 bad_request ", "not a valid JSON object"},
		{OpAcquire, " {a}", nil, "400 bad_request ", "not a valid JSON object"},
		{OpAcquire, strings.Repeat("x", 4097), nil, "413 too_large name", "4096"},
		{OpAcquire, strings.Repeat("x", 65537), nil, "413 too_large ", "65536"},
		{OpAcquire, "a", map[string][]string{"Oclocks-Ttl": {"x"}, "Oclocks-Wait": {"y"}}, "400 bad_request ttl", "duration"},
		{OpAcquire, "a", map[string][]string{"Oclocks-Ttl": {"1s", "2s"}}, "400 bad_request ttl", "twice"},
		{OpAcquire, "a", map[string][]string{"Oclocks-Ttl": {"1s"}, "oclocks-ttl": {"1s"}}, "400 bad_request ttl", "twice"},
		{OpAcquire, "a", map[string][]string{"Oclocks-Holder": {"\xff"}}, "400 bad_request holder", "UTF-8"},
		{OpAcquire, "a", map[string][]string{"Oclocks-Enqueue": {"yes"}}, "400 bad_request enqueue", "true or false"},
		{OpAcquire, "a", map[string][]string{"Oclocks-Data": {"x"}}, "400 bad_request data", "not valid JSON"},
		{OpAcquire, "a", map[string][]string{"Oclocks-Data": {"1,2"}}, "400 bad_request data", "not valid JSON"},
		{OpAcquire, "a", map[string][]string{"Oclocks-Data": {"1] [2"}}, "400 bad_request data", "not valid JSON"},
		{OpAcquire, "a", map[string][]string{"Oclocks-Require": {"acks, colour"}}, "400 unsupported colour", "no field"},
		{OpRelease, "a", nil, "400 bad_request key", "missing"},
		{OpRelease, "a", map[string][]string{"Oclocks-Key": {"secret"}}, "400 bad_request key", "key is a string; send"},
		{OpInfo, "a", nil, "400 bad_request ", "info is not about one lock"},
		{OpKeep, "", nil, "400 bad_request session", "missing"},
		{OpNone, "a", nil, "400 unsupported ", "no such operation"},
	}
	for _, test := range tests {
		var r Request
		refusal := r.DecodeSimple(test.op, []byte(test.body), test.headers)
		checkRefusal(t, fmt.Sprintf("%s %.60q %v", test.op, test.body, test.headers), refusal, test.want, test.message)
	}
}

func checkRefusal(t *testing.T, what string, refusal *Refusal, want, message string) {
	t.Helper()
	if refusal == nil {
		t.Errorf("%s: accepted; want %s", what, want)
		return
	}
	got := fmt.Sprintf("%d %s %s", refusal.Code, refusal.Reason, refusal.Field)
	if got != want || !strings.Contains(refusal.Message, message) {
		t.Errorf("%s\n got %s: %s\nwant %s: …%s…", what, got, refusal.Message, want, message)
	}
}

// What is just within a limit is accepted.
func TestDecodeLimits(t *testing.T) {
	x := strings.Repeat("x", 8192)
	for op, bodies := range map[Op][]string{
		OpAcquire: {
			`{"name":"` + x[:4096] + `"}`,
			`{"name":"a","data":"` + x + x[:16384-8192-2] + `"}`,
			`{"name":"a","holder":"` + x[:256] + `","session":"` + x[:1024] + `"}`,
			`{"name":"a","mode":"semaphore","slots":1000000,"take":1000000}`,
			`{"name":"a","wait":"24h","ttl":"8784h","drain":"timed","quiet":"1h"}`,
			`{"name":"a","x":` + strings.Repeat("[", 31) + strings.Repeat("]", 31) + `}`,
			`{"name":"a"` + strings.Repeat(" ", 65536-12) + `}`,
		},
		OpList:    {`{"after":"` + x + `","prefix":"` + x[:4096] + `"}`},
		OpRelease: {`{"name":"a","key":"0000000000000000","outcome":"` + x[:1024] + `"}`},
	} {
		for _, body := range bodies {
			var r Request
			if refusal := r.Decode(op, []byte(body)); refusal != nil {
				t.Errorf("%s %.60s: %v", op, body, refusal)
			}
		}
	}
}
