package core

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"testing"

	"github.com/cespare/xxhash/v2"
	pb "go.etcd.io/raft/v3/raftpb"
)

// sum puts a right checksum under a body, so that the fuzzer gets past it.
func sum(body []byte) []byte {
	return binary.LittleEndian.AppendUint64(bytes.Clone(body), xxhash.Sum64(body))
}

// FuzzFrame: what can be read is written back as it was, unless it has Raft's own messages; nothing else is taken.
func FuzzFrame(f *testing.F) {
	a := ask{ID: 7, Lease: true, Number: 3, Change: 9, Digest: 1 << 60, Note: []byte("note")}
	for _, frame := range [][]byte{
		encodeAsk(1, 2, &a), encodeAsk(1, 2, &ask{ID: 300}), encodeAnswer(1, 2, &answer{ID: 1, Index: 5, Lease: 800e6, Live: 3}),
		encodeAnswer(1, 2, &answer{ID: 1, Index: 5, Why: "no"}), encodePart(1, 2, &part{Seq: 1, Total: 10, Offset: 5, Data: []byte("12345")}),
	} {
		f.Add(frame[:len(frame)-frameSum])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		raw := sum(body)
		fr, err := decode(raw)
		if err != nil {
			if !errors.Is(err, ErrFrame) {
				t.Fatal(err)
			}
			return
		}
		var again []byte
		switch fr.kind {
		case kindAsk:
			again = encodeAsk(fr.from, fr.to, &fr.ask)
		case kindAnswer:
			again = encodeAnswer(fr.from, fr.to, &fr.answer)
		case kindPart:
			again = encodePart(fr.from, fr.to, &fr.part)
		default:
			return
		}
		if !bytes.Equal(raw, again) {
			t.Fatalf("%x was read as %+v, which is %x", raw, fr, again)
		}
		raw[len(raw)-1] ^= 1
		if _, err := decode(raw); !errors.Is(err, ErrFrame) {
			t.Fatalf("a wrong sum: %v", err)
		}
	})
}

// FuzzReceive: whatever a peer sends, a node takes it, refuses it, or fails; it does not panic, and what it refuses changes
// nothing that is seen from outside.
func FuzzReceive(f *testing.F) {
	seed := func(m *pb.Message) {
		raw, err := marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(byte(kindRaft), append(binary.AppendUvarint(nil, uint64(len(raw))), raw...))
	}
	head := func(k pb.MessageType) *pb.Message {
		return &pb.Message{Type: k.Enum(), From: new(uint64(2)), To: new(uint64(1)), Term: new(uint64(9))}
	}
	for _, k := range []pb.MessageType{pb.MsgHeartbeat, pb.MsgVote, pb.MsgPreVote, pb.MsgAppResp, pb.MsgTimeoutNow, pb.MsgReadIndex, pb.MsgHup} {
		seed(head(k))
	}
	app := head(pb.MsgApp)
	app.Index, app.LogTerm = new(uint64(2)), new(uint64(2))
	app.Entries = []*pb.Entry{{Index: new(uint64(3)), Term: new(uint64(9)), Data: (&envelope{Raft: 2, Life: 1, ID: 1}).encode()}}
	seed(app)
	snap := head(pb.MsgSnap)
	p := Found(2, []byte("{}"))
	snap.Snapshot = p.Snapshot
	seed(snap)
	prop := head(pb.MsgProp)
	prop.Term, prop.Entries = nil, []*pb.Entry{{Data: (&envelope{Raft: 2, Life: 1, ID: 1}).encode()}}
	seed(prop)
	f.Add(byte(kindAsk), []byte{1, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, k byte, body []byte) {
		raw := seal(kind(k), 2, 1, func(b []byte) []byte { return append(b, body...) })
		for _, found := range []bool{true, false} {
			cfg := testConfig()
			cfg.ID, cfg.Life = 1, 1
			var start Start
			if found {
				p := Found(1, []byte("{}"))
				start.Merge(&p)
			}
			n, err := New(cfg, start, 1)
			if err != nil {
				t.Fatal(err)
			}
			settle := func() {
				for n.HasReady() {
					n.Ready()
					n.Advance(0)
				}
			}
			settle()
			n.Tick(2)
			before := fmt.Sprintf("%+v", n.Status())
			err = n.Receive(2, raw)
			if errors.Is(err, ErrFrame) && (n.HasReady() || fmt.Sprintf("%+v", n.Status()) != before) {
				t.Fatalf("refused with %v, and %s became %+v", err, before, n.Status())
			}
			settle()
			if err != nil && !errors.Is(err, ErrFrame) && !errors.Is(n.Err(), ErrFailed) {
				t.Fatal(err)
			}
		}
	})
}

// A long frame comes in parts; a part that is missing or comes twice loses it and nothing else.
func TestParts(t *testing.T) {
	var from, to Node
	from.cfg.ID, to.cfg.ID = 1, 2
	to.frames.whole = map[uint64]*whole{}
	long := encodeRaft(1, 2, [][]byte{{8, 8}, bytes.Repeat([]byte{0x12, 0}, MaxFrame)})
	from.post(2, long)
	parts := from.out.Messages
	if len(parts) < 3 {
		t.Fatalf("%d parts", len(parts))
	}
	give := func(i int) ([]byte, error) {
		f, err := to.addressed(1, parts[i].Frame)
		if err != nil {
			t.Fatal(err)
		}
		return to.frames.add(1, &f.part)
	}
	for round := range 3 {
		for i := range parts {
			got, err := give(i)
			if err != nil || (got != nil) != (i == len(parts)-1) || got != nil && !bytes.Equal(got, long) {
				t.Fatalf("round %d, part %d: %d bytes, %v", round, i, len(got), err)
			}
			if i == round { // it breaks off, and begins anew
				if _, err := give(i); i > 0 && !errors.Is(err, ErrFrame) {
					t.Fatalf("a part twice: %v", err)
				}
				break
			}
		}
		if len(to.frames.whole) > 1 {
			t.Fatal("more than one frame of a sender is kept")
		}
	}
	for i := range parts {
		got, err := give(i)
		if err != nil || i == len(parts)-1 && !bytes.Equal(got, long) {
			t.Fatal(err)
		}
	}
}
