package chain

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// drawMessage makes a message that a copy could send: only the fields of its kind are set.
func drawMessage(t *rapid.T) Message {
	u := rapid.Uint64()
	member := func() Member { return Member{Node: u.Draw(t, "node"), Inc: u.Draw(t, "inc")} }
	point := func() Point {
		return Point{Epoch: u.Draw(t, "epoch"), Seq: rapid.Uint64Range(0, 1<<60).Draw(t, "seq"), Hash: u.Draw(t, "hash")}
	}
	data := func() []byte {
		if b := rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "data"); len(b) > 0 {
			return b
		}
		return nil
	}
	m := Message{Kind: Kind(rapid.IntRange(1, int(kinds)-1).Draw(t, "kind")), Bucket: rapid.Uint32().Draw(t, "bucket"),
		Epoch: u.Draw(t, "view"), From: member(), To: member()}
	switch m.Kind {
	case Append:
		m.Prev, m.Confirmed, m.Head, m.Floor, m.Again = point(), u.Draw(t, "confirmed"), u.Draw(t, "head"),
			rapid.Bool().Draw(t, "floor"), u.Draw(t, "again")
		before := m.Prev
		for range rapid.IntRange(0, 4).Draw(t, "changes") {
			c := Change{Epoch: rapid.Uint64Min(before.Epoch).Draw(t, "epoch"), Seq: before.Seq + 1, Prev: before.Hash,
				Hash: u.Draw(t, "hash"), Data: data()}
			m.Changes = append(m.Changes, c)
			before = c.point()
		}
	case Ack:
		m.Confirmed, m.Resend, m.Again, m.Doubt = u.Draw(t, "confirmed"), rapid.Bool().Draw(t, "resend"), u.Draw(t, "again"),
			u.Draw(t, "doubt")
		for range rapid.IntRange(0, 4).Draw(t, "progress") {
			m.Progress = append(m.Progress, Progress{Member: member(), Seq: u.Draw(t, "seq")})
		}
	case Hello, Join:
		m.Last, m.Anchor, m.Fresh = point(), point(), rapid.Bool().Draw(t, "fresh")
	case Chunk, ChunkAck:
		m.Base, m.Sum = point(), u.Draw(t, "sum")
		m.Size, m.Offset = rapid.Uint64Max(1<<63-1).Draw(t, "size"), rapid.Uint64Max(1<<63-1).Draw(t, "offset")
		if m.Kind == Chunk {
			m.Data = data()
		}
	case Redirect:
		m.At = member()
	}
	return m
}

func TestMessagesComeBackAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMessage(t)
		raw := m.Encode([]byte("before"))
		got, err := Decode(raw[len("before"):])
		if err != nil {
			t.Fatalf("%v: %v", &m, err)
		}
		if !reflect.DeepEqual(got, m) {
			t.Fatalf("%v came back as %v", &m, &got)
		}
		if got.String() != m.String() {
			t.Fatalf("%v is shown as %v", &m, &got)
		}
	})
}

// Whatever bit flips, whatever is cut off or added: it is no message any more.
func TestDamagedMessagesAreNone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawMessage(t)
		raw := m.Encode(nil)
		for bit := range 8 * len(raw) {
			raw[bit/8] ^= 1 << (bit % 8)
			if _, err := Decode(raw); !errors.Is(err, ErrMessage) {
				t.Fatalf("bit %d of %x: %v", bit, raw, err)
			}
			raw[bit/8] ^= 1 << (bit % 8)
		}
		for n := range raw {
			if _, err := Decode(raw[:n]); !errors.Is(err, ErrMessage) {
				t.Fatalf("%d bytes of %x: %v", n, raw, err)
			}
		}
		if _, err := Decode(append(raw, 0)); !errors.Is(err, ErrMessage) {
			t.Fatalf("%x and a zero: %v", raw, err)
		}
	})
}

// What the sum protects from is tried without it: the fields are read strictly, so nothing has two encodings.
func FuzzDecode(f *testing.F) {
	for k := Append; k < kinds; k++ {
		m := Message{Kind: k, Bucket: 3, Epoch: 300, From: Member{1, 2}, To: Member{3, 4}, Prev: Point{1, 2, 3}, At: Member{5, 6},
			Progress: []Progress{{Member{7, 8}, 9}}, Base: Point{4, 5, 6}, Size: 1 << 40, Data: []byte("data")}
		if k == Append {
			m.Changes = []Change{{Epoch: 1, Seq: 3, Prev: 3, Hash: 8, Data: []byte("change")}, {Epoch: 2, Seq: 4, Prev: 8}}
		}
		raw := m.Encode(nil)
		f.Add(raw[:len(raw)-8])
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var m Message
		err := m.decodeBody(body)
		if err != nil {
			return
		}
		raw := m.Encode(nil)
		if again := raw[:len(raw)-8]; !bytes.Equal(again, body) {
			t.Fatalf("%x is %v, and that is %x", body, &m, again)
		}
		if _, err := Decode(raw); err != nil {
			t.Fatalf("%v: %v", &m, err)
		}
	})
}

// A copy takes whatever a node could send without harm: no panic, nothing out of bounds.
func FuzzReceive(f *testing.F) {
	f.Add([]byte{byte(Append), 1, 2, 3}, uint64(1), uint64(2), true)
	f.Fuzz(func(t *testing.T, body []byte, a, b uint64, primary bool) {
		var m Message
		err := m.decodeBody(body)
		if err != nil {
			if len(body) == 0 {
				return
			}
			m = Message{Kind: Kind(body[0] % uint8(kinds)), Prev: Point{Epoch: 1, Seq: a % 9, Hash: b}, Head: b, Confirmed: b, Doubt: a % 9,
				Again: b % 3, Last: Point{1, b % 9, a}, Anchor: Point{1, a % 9, b}, Base: Point{1, a % 9, b}, Size: a % 50,
				Offset: b % 50, Data: body, Resend: a%2 == 1, Progress: []Progress{{Member{2, 1}, a % 9}, {Member{3, b % 3}, b}}}
		}
		c := newCluster(Config{Bucket: 7, Acks: All, Limits: small}, 3)
		c.plane.commit(View{Epoch: 1, Chain: []Member{{1, 1}, {2, 1}, {3, 1}}, InSync: 2})
		for range 6 {
			c.now += 30e6
			for _, nd := range c.nodes {
				c.grant(nd)
				c.apply(nd)
				nd.r.Tick(c.now)
			}
			for range len(c.flying) {
				c.deliver(0)
			}
			for _, nd := range c.nodes {
				c.ready(nd, false)
			}
		}
		nd, from := c.node(2), Member{1, 1}
		if primary {
			nd, from = c.node(1), Member{2, 1}
		}
		m.Bucket, m.Epoch, m.From, m.To = 7, 1, from, nd.r.Self()
		for range 3 {
			if err := nd.r.Receive(from.Node, m); err != nil {
				t.Fatal(err)
			}
			nd.r.Tick(c.now)
			nd.r.Ready(c.now)
			c.now += 60e6
		}
	})
}
