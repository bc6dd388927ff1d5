package control

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

func TestFrames(t *testing.T) {
	from, body, err := unframe(frame(1<<63+7, []byte("raft")))
	if err != nil || from != 1<<63+7 || string(body) != "raft" {
		t.Errorf("got %d %q %v", from, body, err)
	}
	for _, bad := range [][]byte{nil, []byte("short"), append([]byte{9}, frame(1, nil)[1:]...)} {
		if _, _, err := unframe(bad); err == nil {
			t.Errorf("%q is taken for a frame", bad)
		}
	}
}

// TestMessagesKeepEverything: numbers above 2^53 too, which JSON readers of other languages would round.
func TestMessagesKeepEverything(t *testing.T) {
	const big = 1<<64 - 1
	report := chain.Report{Member: chain.Member{Node: big, Inc: big}, Epoch: big, Last: chain.Point{Epoch: 1, Seq: big, Hash: big}, Failed: true}
	check(t, reports{Node: big, Reports: []plan.BucketReport{{Bucket: 1<<32 - 1, Report: report}}})
	check(t, order{
		Term: big, Seal: []plan.SealOrder{{Node: big, Bucket: 3, Epoch: big}},
		HandOver: []plan.HandOverOrder{{Node: 1, Bucket: 2, Epoch: 3, To: chain.Member{Node: 4, Inc: big}}},
	})
	check(t, startQuestion{Identifier: "i", Raft: big})
	check(t, startAnswer{Raft: big, Start: big, Change: big, Leading: true, Elects: true})
	check(t, admission{Number: big, Life: 2, Change: big, WaitMS: 5, Duplicate: true, Kind: "removed", Problem: "p", Votes: true})
	check(t, hello{Identifier: "i", Number: big, Start: big, Ask: true})
	check(t, farewell{Identifier: "i", Start: big})
	check(t, changed{Result: shared.Result{Change: big, Taken: []uint32{1}}, Unavailable: "u"})
	check(t, Alert{Node: big, Bucket: -1, Text: "<text>"})
}

func check[T any](t *testing.T, message T) {
	t.Helper()
	got, err := decodeMessage[T](encode(message))
	if err != nil || !reflect.DeepEqual(got, message) {
		t.Errorf("got %+v, %v, want %+v", got, err, message)
	}
}

// FuzzMessages feeds what another node might send: nothing may end the process, and what is read is read again the same.
func FuzzMessages(f *testing.F) {
	f.Add([]byte(`{"node":1,"reports":[{"Bucket":1,"Report":{"Member":{"Node":1}}}]}`))
	f.Add([]byte(`{"term":1,"seal":[{"Node":1}],"hand_over":[{}]}`))
	f.Add([]byte(`{"id":"a","start":1}`))
	f.Add(frame(3, []byte("x")))
	f.Fuzz(func(t *testing.T, data []byte) {
		if from, body, err := unframe(data); err == nil && !bytes.Equal(frame(from, body), data) {
			t.Errorf("frame %q is not what it was", data)
		}
		again(t, data, decodeMessage[reports])
		again(t, data, decodeMessage[order])
		again(t, data, decodeMessage[startAnswer])
		again(t, data, decodeMessage[hello])
		again(t, data, decodeMessage[Status])
	})
}

func again[T any](t *testing.T, data []byte, decode func([]byte) (T, error)) {
	m, err := decode(data)
	if err != nil {
		return
	}
	first, err := json.Marshal(m)
	if err != nil {
		t.Fatalf("%T: %v", m, err)
	}
	n, err := decode(first)
	if err != nil {
		t.Fatalf("%T %s: %v", m, first, err)
	}
	second, err := json.Marshal(n)
	if err != nil || !bytes.Equal(first, second) {
		t.Errorf("%T: %s, then %s, %v", m, first, second, err)
	}
}

func TestLastToken(t *testing.T) {
	for subject, want := range map[string]uint64{"alert.7": 7, "alert.x": 0, "7": 7, "": 0, "a.18446744073709551616": 0} {
		if got := lastToken(subject); got != want {
			t.Errorf("%q: %d, want %d", subject, got, want)
		}
	}
	if s := subjectOrder(1<<64 - 1); !strings.HasSuffix(s, ".18446744073709551615.order") {
		t.Error(s)
	}
}
