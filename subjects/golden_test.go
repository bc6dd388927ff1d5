package subjects

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

const testTime = 1_790_000_000_123 // 2026-09-21T14:13:20.123Z

// golden are messages with the JSON that the protocol shows for them.
var golden = []struct {
	body Body
	want string
}{
	// "The grant"
	{&Grant{Name: "orders/4711", Key: 0xab, Token: 7, Take: 1, TTL: 30 * time.Second, Lease: 10 * time.Second, Bucket: 17, Epoch: 3,
		Node: "N1", Ticket: 9, Waited: 12 * time.Millisecond, Beat: 4, Durable: true, Receipt: "R"},
		`{"granted":true,"name":"orders/4711","key":"00000000000000ab","token":7,"mode":"exclusive","take":1,"ttl":"30s",` +
			`"lease":"10s","bucket":17,"epoch":3,"node":"N1","ticket":9,"waited":"12ms","beat":4,"durable":true,"receipt":"R"}`},
	// "Replies give name64 where a name is not UTF-8."
	{&Grant{Name: "\xff\x00", Key: 1<<64 - 1, Token: MaxToken, Mode: Semaphore, Take: 3},
		`{"granted":true,"name64":"/wA=","key":"ffffffffffffffff","token":9007199254740991,"mode":"semaphore","take":3,"ttl":"0s",` +
			`"lease":"0s","bucket":0,"epoch":0,"ticket":0,"waited":"0s","durable":false}`},
	{&Released{Token: 7, Held: 1200 * time.Millisecond}, `{"released":true,"token":7,"held":"1.2s"}`},
	{&Queued{Name: "a", Ticket: 9, Place: 2, Lease: 10 * time.Second, Bucket: 17, Node: "N1"},
		`{"queued":true,"name":"a","ticket":9,"place":2,"lease":"10s","bucket":17,"node":"N1"}`},
	{&Queued{Name: "\xfe", Ticket: 9, Place: 1},
		`{"queued":true,"name64":"/g==","ticket":9,"place":1,"lease":"0s","bucket":0}`},
	{&Cancelled{Request: "17", Was: "granted", Token: 7}, `{"cancelled":true,"request":"17","was":"granted","token":7}`},
	{&Cancelled{Request: "r-1", Was: "unseen"}, `{"cancelled":true,"request":"r-1","was":"unseen"}`},
	{&Forced{Token: 7, Ended: true}, `{"forced":true,"token":7,"ended":true}`},
	{&Forced{Token: 7, Ends: 12 * time.Second}, `{"forced":true,"token":7,"ended":false,"ends":"12s"}`},
	{&Checked{Current: true, Newest: 9, Oldest: 7}, `{"current":true,"newest":9,"oldest":7}`},
	{&Record{Name: "a"}, `{"name":"a","state":"free","holders":[],"queue":[],"waiting":0}`},
	// "never a key"
	{&Record{Name: "a", Held: true, Mode: Semaphore, Slots: 5, Waiting: 12, More: 3,
		Holders: []Holder{
			{Holder: "Ann", User: "U1", Session: "AAAAAAAAAAA", Token: 7, Since: testTime, TTL: time.Minute, Take: 2,
				Kind: Connection, Forced: true, Data: []byte(`{"x": 1}`)},
			{User: "U2", Token: 8, Since: testTime, Take: 1, Kind: Static}},
		Queue: []Waiter{
			{Ticket: 9, Holder: "Bob", User: "U3", Session: "BBBBBBBBBBB", Mode: Semaphore, Take: 4, Since: testTime},
			{Ticket: 10, User: "U4", Mode: Exclusive, Take: 1, Since: testTime}}},
		`{"name":"a","state":"held","mode":"semaphore","slots":5,"holders":[{"holder":"Ann","user":"U1","session":"AAAAAAAAAAA",` +
			`"token":7,"since":"2026-09-21T14:13:20.123Z","ttl":"1m","take":2,"kind":"connection","forced":true,"data":{"x": 1}},` +
			`{"user":"U2","token":8,"since":"2026-09-21T14:13:20.123Z","ttl":"0s","kind":"static"}],"queue":[{"ticket":9,"holder":"Bob",` +
			`"user":"U3","session":"BBBBBBBBBBB","mode":"semaphore","take":4,"since":"2026-09-21T14:13:20.123Z"},{"ticket":10,` +
			`"user":"U4","mode":"exclusive","since":"2026-09-21T14:13:20.123Z"}],"waiting":12,"more":3}`},
	{&Page{Locks: []Record{{Name: "\xff", Held: true, Mode: Shared}, {Name: "b"}}, Next: "x"},
		`{"locks":[{"name64":"/w==","state":"held","mode":"shared","holders":[],"queue":[],"waiting":0},` +
			`{"name":"b","state":"free","holders":[],"queue":[],"waiting":0}],"next":"x"}`},
	{&Page{}, `{"locks":[]}`},
	{&Opened{Session: "S", Secret: "x", User: "U1", TTL: 30 * time.Second, Lease: 10 * time.Second, Node: "N1", Incarnation: 2,
		Disconnect: "event", Events: "locks.event.session.U1.S"},
		`{"session":"S","secret":"x","user":"U1","ttl":"30s","lease":"10s","node":"N1","incarnation":2,"disconnect":"event",` +
			`"events":"locks.event.session.U1.S"}`},
	{&SessionClosed{Released: 3}, `{"closed":true,"released":3}`},
	// "{"node","beat":n,"count","hash","lease"}", "in 16 hex digits"
	{&Kept{Node: "N1", Beat: 4, Count: 2, Hash: 0xab, Lease: 10 * time.Second},
		`{"node":"N1","beat":4,"count":2,"hash":"00000000000000ab","lease":"10s"}`},
	{&Kept{Node: "N1", Beat: 4, Count: 2, Hash: 0xab, Lease: 10 * time.Second, Buckets: []KeptBucket{
		{Bucket: 3, Epoch: 7, Count: 1, Hash: 0xaa}, {Bucket: 9, Epoch: 2, Count: 1, Hash: 1}}},
		`{"node":"N1","beat":4,"count":2,"hash":"00000000000000ab","lease":"10s","buckets":[` +
			`{"bucket":3,"epoch":7,"count":1,"hash":"00000000000000aa"},{"bucket":9,"epoch":2,"count":1,"hash":"0000000000000001"}]}`},
	{&Info{Protocol: 1, Features: []string{"acks", "recall"}, Version: "v0", Cluster: "C", Zone: "Z", User: "U1", Node: "N1",
		Buckets: 256, Map: Map{Change: 5, Primary: []string{"N1", "N2"}}, Mode: "normal", Have: 3, Need: 2, MaxLease: time.Minute},
		`{"protocol":1,"features":["acks","recall"],"version":"v0","cluster":"C","zone":"Z","user":"U1","node":"N1","buckets":256,` +
			`"map":{"change":5,"primary":["N1","N2"]},"mode":"normal","quorum":{"have":3,"need":2},"max_lease":"1m"}`},
	// "primary only where servers are not hidden"
	{&Info{Protocol: 1}, `{"protocol":1,"features":[],"version":"","cluster":"","zone":"","user":"","node":"","buckets":0,` +
		`"map":{"change":0},"mode":"","quorum":{"have":0,"need":0},"max_lease":"0s"}`},
	{&Servers{Servers: []Server{{Node: "N1", Name: "one", URLs: []string{"nats://a:4222"}, Location: "eu", Status: "up"},
		{Node: "N2", Status: "stopping"}}},
		`{"servers":[{"node":"N1","name":"one","urls":["nats://a:4222"],"location":"eu","status":"up"},` +
			`{"node":"N2","name":"","urls":[],"location":"","status":"stopping"}]}`},
	{&Cluster{Cluster: "C", Change: 9, Mode: "degraded", Quorum: ClusterQuorum{Have: 1, Need: 2}, Leader: 1, Total: 4,
		Nodes: []ClusterNode{{Number: 1, Node: "N1", Name: "one", Location: "eu", Priority: 5, Status: "up", Answered: true, Leader: true,
			Voter: true, Change: 9, Digest: "00000000000000ab", Lease: "612ms", Away: []uint64{2}, Primaries: 4, Copies: 4, Degraded: 4},
			{Number: 2, Node: "N2", Name: "two", Priority: 15, Status: "away"}},
		Buckets: []ClusterBucket{{Bucket: 3, Primary: 1, Epoch: 7, Chain: []uint64{1, 2}, InSync: 1, Acting: true, Degraded: true, Confirmed: 12,
			Copies: []ClusterCopy{{Node: 1, Role: "primary", Epoch: 7, History: "equal"}}, Problem: "one copy"}}, More: 3},
		`{"cluster":"C","change":9,"mode":"degraded","quorum":{"have":1,"need":2},"leader":1,"total":4,"nodes":[{"number":1,"node":"N1",` +
			`"name":"one","location":"eu","priority":5,"status":"up","answered":true,"leader":true,"voter":true,"change":9,` +
			`"digest":"00000000000000ab","lease":"612ms","away":[2],"primaries":4,"copies":4,"degraded":4,"recovery":0,"lag":0},` +
			`{"number":2,"node":"N2","name":"two","priority":15,"status":"away","answered":false,"primaries":0,"copies":0,"degraded":0,` +
			`"recovery":0,"lag":0}],"buckets":[{"bucket":3,"primary":1,"epoch":7,"chain":[1,2],"in_sync":1,"acting":true,"degraded":true,` +
			`"recovery":false,"confirmed":12,"copies":[{"node":1,"role":"primary","epoch":7,"lag":0,"history":"equal"}],` +
			`"problem":"one copy"}],"more":3}`},
	{&Pong{Node: "N1", Now: testTime}, `{"node":"N1","now":"2026-09-21T14:13:20.123Z"}`},

	// "a body {"error":{"code":409,"reason":"held","message":"…", …}}"; 409: "holder, since, queue"
	{&Refusal{Code: 409, Reason: ReasonHeld, Message: "held by \"Ann\"\r\n", Holder: "Ann", Since: testTime, HasQueue: true},
		`{"error":{"code":409,"reason":"held","message":"held by \"Ann\"\r\n","holder":"Ann","since":"2026-09-21T14:13:20.123Z",` +
			`"queue":0}}`},
	{&Refusal{Code: 400, Reason: ReasonBadRequest, Message: "m", Field: "ttl"},
		`{"error":{"code":400,"reason":"bad_request","message":"m","field":"ttl"}}`},
	{&Refusal{Code: 400, Reason: ReasonBadRequest, Message: "m", Field: "request", Above: 1<<53 - 1},
		`{"error":{"code":400,"reason":"bad_request","message":"m","field":"request","above":9007199254740991}}`},
	{&Refusal{Code: 503, Reason: ReasonUnavailable, Message: "m", Why: WhyStopping, RetryAfter: time.Second},
		`{"error":{"code":503,"reason":"unavailable","message":"m","why":"stopping","retry_after":"1s"}}`},
	// 421: "the current map"
	{&Refusal{Code: 421, Reason: ReasonMoved, Message: "m", Map: &Map{Change: 5, Primary: []string{"N1"}}},
		`{"error":{"code":421,"reason":"moved","message":"m","map":{"change":5,"primary":["N1"]}}}`},

	{&SessionEvent{Subject: "s", Type: "lost", Name: "a", Token: 7, Why: WhyExpired},
		`{"subject":"s","type":"lost","name":"a","token":7,"why":"expired"}`},
	{&SessionEvent{Subject: "s", Type: "granted", Name: "a", Ticket: 9, Request: "17", Grant: &Grant{Name: "a", Token: 7, Take: 1}},
		`{"subject":"s","type":"granted","name":"a","ticket":9,"request":"17","grant":{"granted":true,"name":"a",` +
			`"key":"0000000000000000","token":7,"mode":"exclusive","take":1,"ttl":"0s","lease":"0s","bucket":0,"epoch":0,"ticket":0,` +
			`"waited":"0s","durable":false}}`},
	{&SessionEvent{Subject: "s", Type: "timeout", Name: "\xff", Queue: 3, Refusal: &Refusal{Code: 408, Reason: ReasonTimeout, Message: "m",
		Queue: 3, HasQueue: true}},
		`{"subject":"s","type":"timeout","name64":"/w==","queue":3,"error":{"code":408,"reason":"timeout","message":"m","queue":3}}`},
	{&SessionEvent{Subject: "s", Type: "place", Place: 1}, `{"subject":"s","type":"place","place":1}`},
	{&LockEvent{Subject: "s", Type: "released", Name: "a", Token: 7, Holder: "Ann", User: "U1", Outcome: "ok", Held: time.Minute, Bucket: 17},
		`{"subject":"s","type":"released","name":"a","token":7,"holder":"Ann","user":"U1","outcome":"ok","held":"1m","bucket":17}`},
	{&LockEvent{Subject: "s", Type: "granted", Name: "a"}, `{"subject":"s","type":"granted","name":"a","bucket":0}`},
	{&ServerEvent{Subject: "s", Type: "server.up", Node: "N1", Name: "one", URLs: []string{"u"}, Status: "up"},
		`{"subject":"s","type":"server.up","node":"N1","name":"one","urls":["u"],"status":"up"}`},
	{&ServerEvent{Subject: "s", Type: "cluster.mode", Mode: "normal"}, `{"subject":"s","type":"cluster.mode","mode":"normal"}`},
}

func TestGolden(t *testing.T) {
	for _, g := range golden {
		got := string(g.body.AppendJSON([]byte("before ")))
		if got != "before "+g.want {
			t.Errorf("%T\n got %s\nwant %s", g.body, strings.TrimPrefix(got, "before "), g.want)
		}
		if !json.Valid([]byte(g.want)) {
			t.Errorf("%s is not valid JSON", g.want)
		}
	}
}

func TestAppendString(t *testing.T) {
	for s, want := range map[string]string{
		"":                 `""`,
		"a\"\\/\b\f\n\r\t": `"a\"\\/\u0008\u000c\n\r\t"`,
		"\x00\x1f\x7f":     "\"\\u0000\\u001f\x7f\"",
		"<é>\u2028😀":       "\"<é>\u2028😀\"",
		"a\xffb\xc3":       "\"a\ufffdb\ufffd\"",
		"\ufffd\xff":       "\"\ufffd\ufffd\"",
	} {
		if got := string(appendString(nil, s)); got != want {
			t.Errorf("%q: got %s, want %s", s, got, want)
		}
	}
}

// "durations are strings ("30s", "1m30s", "0s")"
func TestAppendDuration(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", 1: "0.000001ms", 350 * time.Microsecond: "0.35ms", 12 * time.Millisecond: "12ms", 1200 * time.Millisecond: "1.2s",
		30 * time.Second: "30s", 90 * time.Second: "1m30s", time.Minute: "1m", time.Hour: "1h", time.Hour + time.Second: "1h1s",
		time.Hour + time.Millisecond: "1h0.001s", 1<<63 - 1: "2562047h47m16.854775807s", -time.Second: "0s",
	} {
		if got := string(appendDuration(nil, d)); got != want {
			t.Errorf("%d: got %s, want %s", d, got, want)
		}
	}
}

// "headers Nats-Service-Error-Code and Nats-Service-Error"
func TestRefusalHeaders(t *testing.T) {
	tests := []struct {
		refusal           Refusal
		code, description string
	}{
		{Refusal{Code: 409, Reason: ReasonHeld, Message: "held by Ann"}, "409", "held: held by Ann"},
		{Refusal{Code: 404, Reason: ReasonNotHeld}, "404", "not_held"},
		{Refusal{Code: 400, Reason: ReasonBadRequest, Message: "a\r\nNats-Service: x\x00\x7f\xff é\n"}, "400",
			"bad_request: a  Nats-Service: x   é"},
		{Refusal{Code: 400, Reason: ReasonBadRequest, Message: strings.Repeat("é", 300)}, "400",
			"bad_request: " + strings.Repeat("é", 249)},
	}
	for _, test := range tests {
		code, description := test.refusal.Headers()
		if code != test.code || description != test.description {
			t.Errorf("got %q, %q; want %q, %q", code, description, test.code, test.description)
		}
	}
}

func TestRefusalError(t *testing.T) {
	r := Refusal{Code: 410, Reason: ReasonLost, Why: WhyExpired, Message: "m"}
	if got := r.Error(); got != "410 lost (expired): m" {
		t.Errorf("got %q", got)
	}
}
