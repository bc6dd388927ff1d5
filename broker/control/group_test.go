package control

import (
	"slices"
	"testing"
	"time"

	"github.com/opencluster/oclocks/conf/shared"
)

// voters waits until so many of the nodes vote, by what each of them knows.
func (k *cluster) voters(count int, nodes ...*node) {
	k.t.Helper()
	eventually(k.t, "the group has its voters", func() bool {
		voting := 0
		for _, n := range nodes {
			s := n.c.arb.Status()
			if len(s.Voters) != count {
				return false
			}
			if slices.Contains(s.Voters, s.Raft) {
				voting++
			}
		}
		return voting == count
	})
}

// change has a command carried out, by whatever node is asked.
func (n *node) change(command shared.Command) {
	n.t.Helper()
	result, err := n.c.Change(within(n.t), command)
	if err != nil || result.Err() != nil {
		n.t.Fatal(err, result.Err())
	}
}

func setting(key, value string) shared.Command {
	return shared.Command{Set: &shared.Set{Settings: map[string]string{key: value}}}
}

// TestTheGroupShrinksAndGrows: by the number of voters that is wanted, then by the number of nodes, the leader among those that
// go. After each step the group decides and everybody has a lease.
func TestTheGroupShrinksAndGrows(t *testing.T) {
	k, nodes := three(t)
	nodes[0].change(setting("voters", "1"))
	k.voters(1, nodes...)
	nodes[1].change(setting("voters", "3"))
	k.voters(3, nodes...)

	lead, others := leader(t, nodes...)
	others[0].change(shared.Command{Remove: &shared.Remove{Number: others[0].number()}})
	<-others[0].c.Failed()
	others[0].close()
	k.complete(lead, others[1])
	k.voters(1, lead, others[1])

	four := k.join(k.config(4))
	k.complete(lead, others[1], four)
	k.voters(3, lead, others[1], four)

	lead, others = leader(t, lead, others[1], four)
	others[0].change(shared.Command{Remove: &shared.Remove{Number: lead.number()}})
	<-lead.c.Failed()
	lead.close()
	k.complete(others...)
	k.voters(1, others...)

	lead, others = leader(t, others...)
	others[0].change(shared.Command{Remove: &shared.Remove{Number: lead.number()}})
	<-lead.c.Failed()
	lead.close()
	k.complete(others...)
	k.voters(1, others...)
	others[0].change(setting("copies", "1"))
}

// TestAVoterThatStaysAwayIsReplaced: and when it comes back it does not vote any more; then the next one may go.
func TestAVoterThatStaysAwayIsReplaced(t *testing.T) {
	k := newCluster(t)
	k.found.Settings["voters"] = "3"
	var nodes []*node
	for i := range 4 {
		cfg := k.config(i + 1)
		cfg.Plan.Absent = int64(300 * time.Millisecond)
		cfg.Dir = t.TempDir()
		if i == 0 {
			cfg.Found = k.found
		}
		nodes = append(nodes, k.join(cfg))
	}
	k.complete(nodes...)
	k.voters(3, nodes...)
	for range 2 {
		lead, others := leader(t, nodes...)
		at := slices.IndexFunc(others, func(n *node) bool { return n.c.Status().Voter })
		gone := others[at]
		rest := append(slices.Delete(slices.Clone(others), at, at+1), lead)
		gone.close()
		k.voters(3, rest...)
		cfg := gone.cfg
		cfg.Found = nil
		back := k.join(cfg)
		nodes = append(rest, back)
		k.complete(nodes...)
		if id := back.c.identity(); id.Life != 1 || back.c.Status().Voter {
			t.Errorf("came back as %+v, votes: %t", id, back.c.Status().Voter)
		}
	}
}
