package plan

import (
	"testing"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
)

// The leader tells that longer leases than max_lease were outlived, when it has waited for them itself, again and again until the
// state shows it; and only of the change that made them too long last.
func TestLongerLeasesAreOutlived(t *testing.T) {
	keys, err := conf.NewZoneKeys()
	if err != nil {
		t.Fatal(err)
	}
	fsm, change := shared.New(), uint64(0)
	apply := func(c shared.Command) {
		t.Helper()
		change++
		got, err := fsm.Apply(change, c.Encode())
		if res, _ := got.(shared.Result); err != nil || res.Err() != nil {
			t.Fatal(res.Err())
		}
	}
	set := func(longest string) {
		apply(shared.Command{Set: &shared.Set{Settings: map[string]string{"max_lease": longest, "session_lease": "1s"}}})
	}
	apply(shared.Command{Found: &shared.Found{Cluster: "c", Buckets: 1, Zones: []conf.Zone{{Name: "z"}}, Keys: map[string]conf.ZoneKeys{"z": keys}}})
	apply(shared.Command{Register: &shared.Register{ID: "aaaaaaaaaaaaaaaaaaaaaaaaaa", Raft: 10, Fresh: true, Name: "n"}})
	p, clock, term := New(Config{}), int64(1e9), uint64(2)
	step := func() Output {
		return p.Step(Input{
			Now: clock, Leading: true, Term: term, State: fsm.State(),
			Nodes: []Evidence{{Number: 1, LeaseUntil: clock + 800e6, Connected: true}},
			Group: Group{Leader: 10, Voters: []uint64{10}, Last: 9},
		})
	}
	silent := func(from, until int64) {
		t.Helper()
		for clock = from; clock < until; clock += 250e6 {
			if out := step(); out.Outlived != 0 {
				t.Fatalf("change %d is outlived after %d ms", out.Outlived, (clock-from)/1e6)
			} else if out.Next > until {
				t.Fatalf("the next step is due at %d, and something is to be told at %d", out.Next, until)
			}
		}
	}
	silent(clock, clock+5e9)
	set("30s") // a minute before
	wait := int64(fsm.State().Outlive())
	if wait < 60e9+800e6 {
		t.Fatalf("it waits for %d ms", wait/1e6)
	}
	began := clock
	silent(began, began+wait/2)
	set("20s") // once more: it begins anew
	began = clock
	silent(began, began+wait/2)
	term++ // another leader, who does not know since when
	began = clock
	silent(began, began+wait)
	for range 2 {
		clock = max(clock, began+wait)
		if out := step(); out.Outlived != change {
			t.Fatalf("change %d is outlived, want %d", out.Outlived, change)
		}
		if out := step(); out.Outlived != 0 {
			t.Fatal("told twice at once")
		}
		clock += 100e6 // the command is lost
	}
	apply(shared.Command{Outlived: &shared.Outlived{Change: change}})
	silent(clock, clock+200e9)
}
