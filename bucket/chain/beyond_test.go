package chain

import (
	"slices"
	"testing"
)

// A copy that joins behind another joiner may know of more confirmed changes than that one has heard of: it stood elsewhere
// before. That is no other history, so nobody is alerted, and it is waited for; unless the change is from before the view, when
// the primary would have it.
func TestWhoKnowsMoreIsWaitedFor(t *testing.T) {
	const self, tail, other = 2, 4, 3
	for _, tc := range []struct {
		name          string
		epoch         uint64 // of what the other one knows to be confirmed
		head          uint64 // of what was heard here
		alerts, later int
	}{
		{"of this epoch", 2, 3, 0, 0},
		{"of an earlier epoch", 1, 3, 1, 1},
		{"the head is not known", 1, 0, 0, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, err := New(Config{Bucket: 7, Self: Member{self, 1}}, Start{})
			if err != nil {
				t.Fatal(err)
			}
			view := View{Epoch: 2, Chain: []Member{{1, 1}, {tail, 1}}, InSync: 2}
			if err := r.Install(view); err != nil {
				t.Fatal(err)
			}
			r.Applied(1)
			r.Grant(Lease{Until: 100 * second, Under: 1})
			r.Join()
			now := second
			alerts, sent := 0, []Message(nil)
			ready := func() {
				now += second / 100
				r.Tick(now)
				out := r.Ready(now)
				alerts, sent = alerts+len(out.Alerts), append(sent, out.Messages...)
			}
			receive := func(m Message) {
				m.Bucket, m.Epoch, m.To = 7, view.Epoch, r.Self()
				if err := r.Receive(m.From.Node, m); err != nil {
					t.Fatal(err)
				}
				ready()
			}
			var changes []Change
			prev := Origin(7)
			for seq := uint64(1); seq <= 9; seq++ {
				c := Change{Epoch: tc.epoch, Seq: seq, Prev: prev.Hash, Data: []byte{byte(seq)}}
				c.Hash = chainHash(c.Prev, c.Epoch, c.Seq, c.Data)
				changes, prev = append(changes, c), c.point()
			}
			ready()
			receive(Message{Kind: Redirect, From: Member{1, 1}, At: Member{tail, 1}})
			receive(Message{Kind: Welcome, From: Member{tail, 1}})
			receive(Message{Kind: Append, From: Member{tail, 1}, Prev: Origin(7), Changes: changes[:3], Confirmed: 3, Head: tc.head})
			receive(Message{Kind: Join, From: Member{other, 1}, Last: prev, Anchor: prev})
			if alerts != tc.alerts {
				t.Fatalf("%d alerts\n%s", alerts, r.Describe())
			}
			sent = nil
			if tc.head == 0 { // what the primary had when the view began, and nothing since
				receive(Message{Kind: Append, From: Member{tail, 1}, Prev: changes[2].point(), Confirmed: 3, Head: 3})
			} else {
				receive(Message{Kind: Append, From: Member{tail, 1}, Prev: changes[2].point(), Changes: changes[3:], Confirmed: 9, Head: 9})
			}
			if alerts != tc.later {
				t.Fatalf("%d alerts later\n%s", alerts, r.Describe())
			}
			streams := slices.ContainsFunc(sent, func(m Message) bool { return m.Kind == Append && m.To.Node == other && m.Prev == prev })
			if streams == (tc.later > 0) {
				t.Fatalf("it goes on behind us: %v\n%s", streams, r.Describe())
			}
		})
	}
}
