package plan

import (
	"fmt"
	"testing"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
)

// A leader that was removed makes no learner of another voter, not even of one that is away: it ends as soon as it knows, and then
// the voters that are left could not decide without it. Whom it takes into the group where nobody can follow it is in
// testdata/golden/staying.txt.
func TestRemovedLeaderDemotesNobody(t *testing.T) {
	keys, err := conf.NewZoneKeys()
	if err != nil {
		t.Fatal(err)
	}
	fsm, change := shared.New(), uint64(0)
	apply := func(c shared.Command) {
		change++
		got, err := fsm.Apply(change, c.Encode())
		if res, _ := got.(shared.Result); err != nil || res.Err() != nil {
			t.Fatal(res.Err())
		}
	}
	apply(shared.Command{Found: &shared.Found{Cluster: "c", Buckets: 1, Zones: []conf.Zone{{Name: "z"}}, Keys: map[string]conf.ZoneKeys{"z": keys}}})
	for i := range uint64(3) {
		apply(shared.Command{Register: &shared.Register{ID: fmt.Sprintf("aaaaaaaaaaaaaaaaaaaaaaaaa%c", 'a'+rune(i)), Raft: 10 + i, Fresh: true, Name: fmt.Sprint("n", i)}})
	}
	apply(shared.Command{Remove: &shared.Remove{Number: 3}})
	p := New(Config{})
	for now := int64(1e9); now < 60e9; now += 50e6 {
		out := p.Step(Input{
			Now: now, Leading: true, Term: 2, State: fsm.State(),
			Nodes: []Evidence{{Number: 2, LeaseUntil: now + 800e6, Connected: true}}, // node 1 is away
			Group: Group{Leader: 12, Voters: []uint64{10, 11, 12}, Last: 9, Match: []Match{{Raft: 10, Index: 9}, {Raft: 11, Index: 9, Heard: true}}},
		})
		for _, step := range out.Members {
			if step.Change != Transfer || step.Raft != 11 {
				t.Fatalf("%v of %d", step.Change, step.Raft)
			}
		}
	}
}
