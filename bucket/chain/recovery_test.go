package chain

import "testing"

// A recovery takes as long as was told before its view was installed; one that is under way is not made shorter.
func TestHowLongARecoveryTakes(t *testing.T) {
	r, err := New(Config{Bucket: 7, Self: Member{1, 1}, Recovery: second}, Start{})
	if err != nil {
		t.Fatal(err)
	}
	now, view := second, View{Epoch: 1, Chain: []Member{{1, 1}}, InSync: 1, Recovery: true}
	r.Tick(now)
	r.SetRecovery(3 * second)
	if err := r.Install(view); err != nil {
		t.Fatal(err)
	}
	r.Applied(1)
	r.Grant(Lease{Until: 100 * second, Under: 1})
	r.SetRecovery(second / 2)
	for began := now; now < began+3*second; now += second / 8 {
		r.Tick(now)
		if out := r.Ready(now); out.Recovering < began+3*second-second/8 || out.Propose != nil && !out.Propose.Recovery {
			t.Fatalf("after %d ms: until %d ms, asks for %v", (now-began)/1e6, (out.Recovering-began)/1e6, out.Propose)
		}
		if r.Proposable() == nil && r.log.last().Seq == 0 {
			if _, err := r.Propose([]byte("first")); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.Tick(now)
	if out := r.Ready(now); out.Propose == nil || out.Propose.Recovery {
		t.Fatalf("after 3 s it asks for %v", out.Propose)
	}
}
