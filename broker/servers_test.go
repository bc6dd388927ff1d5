package broker

import (
	"slices"
	"strings"
	"testing"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/subjects"
)

func testNodes() []shared.Node {
	return []shared.Node{
		{Number: 1, ID: "n1", Location: "eu/fra/r1", Priority: 5, Clients: []string{"10.0.0.1:4222"}},
		{Number: 2, ID: "n2", Location: "eu/fra/r2", Priority: 5, Clients: []string{"0.0.0.0:4222"}, Routes: []string{"two.example:6222"}},
		{Number: 3, ID: "n3", Location: "us/nyc/r1", Priority: 5, Clients: []string{"[::]:4222"}},
		{Number: 4, ID: "n4", Location: "us/nyc/r1", Priority: 1, Clients: []string{"[fd00::4]:4222"}},
		{Number: 5, ID: "n5", Location: "us/nyc/r1", Arbiter: true},
	}
}

func TestNearestServersFirst(t *testing.T) {
	state := &shared.State{Nodes: testNodes()}
	for _, c := range []struct {
		self     uint64
		location string
		want     string
	}{
		{1, "", "n1 n2 n4 n3"},
		{2, "", "n2 n1 n4 n3"},
		{1, "eu/fra/r2", "n2 n1 n4 n3"},
		{1, "us/nyc/r1/c7", "n4 n3 n1 n2"},
		{3, "us/nyc/r1", "n3 n4 n1 n2"},
		{2, "au", "n2 n4 n1 n3"}, // all are as far
		{9, "", "n4 n1 n2 n3"},
	} {
		list := nearest(state, c.self, c.location, func(n *shared.Node) subjects.Server { return subjects.Server{Node: n.ID} })
		var got []string
		for _, s := range list {
			got = append(got, s.Node)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("from %q at node %d: %v, want %s", c.location, c.self, got, c.want)
		}
	}
}

func TestURLsOfServers(t *testing.T) {
	for i, want := range [][]string{{"nats://10.0.0.1:4222"}, {"nats://two.example:4222"}, {}, {"nats://[fd00::4]:4222"}, {}} {
		if got := urls(&testNodes()[i]); !slices.Equal(got, want) {
			t.Errorf("node %d: %v, want %v", i+1, got, want)
		}
	}
}

func TestModeOfTheCluster(t *testing.T) {
	healthy := chain.View{Epoch: 3, Chain: []chain.Member{{Node: 1}, {Node: 2}}, InSync: 2}
	single := chain.View{Epoch: 3, Chain: []chain.Member{{Node: 1}}, InSync: 1}
	recovering := healthy
	recovering.Recovery = true
	for name, c := range map[string]struct {
		change func(h *health)
		want   string
	}{
		"as it should be":                {func(*health) {}, modeNormal},
		"no lease":                       {func(h *health) { h.leased = false }, modeNoQuorum},
		"fewer than min_quorum":          {func(h *health) { h.live = 2 }, modeNoQuorum},
		"a node is away":                 {func(h *health) { h.gone = func(n uint64) bool { return n == 4 } }, modeDegraded},
		"an arbiter is away":             {func(h *health) { h.gone = func(n uint64) bool { return n == 5 } }, modeNormal},
		"one copy":                       {func(h *health) { h.state.Views[1] = single }, modeDegraded},
		"one copy, and no more wanted":   {func(h *health) { h.state.Views[1] = single; h.state.Settings.Copies = 1 }, modeNormal},
		"one node":                       {func(h *health) { h.state.Views[1] = single; h.state.Nodes = testNodes()[:1] }, modeNormal},
		"recovery":                       {func(h *health) { h.state.Views[1] = recovering }, modeDegraded},
		"a bucket without a primary yet": {func(h *health) { h.state.Views[0] = chain.View{} }, modeDegraded},
	} {
		h := health{
			state: &shared.State{Nodes: testNodes(), Views: []chain.View{healthy, healthy}, Settings: shared.Settings{MinQuorum: 3}},
			gone:  func(uint64) bool { return false }, leased: true, live: 4,
		}
		c.change(&h)
		if got := h.mode(); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestEventsOfNodesAndCluster(t *testing.T) {
	state := &shared.State{Nodes: testNodes()}
	n := &state.Nodes[0]
	for _, c := range []struct{ before, now, kind, status string }{
		{"", statusUp, "up", "up"}, {statusAway, statusUp, "up", "up"}, {statusStopping, statusDraining, "up", "draining"},
		{statusUp, statusAway, "down", "away"}, {statusUp, statusStopping, "down", "stopping"},
		{statusUp, statusDraining, "changed", "draining"}, {statusUp, statusUp, "changed", "up"},
	} {
		before := ""
		if c.before != "" {
			before = sightOf(n, c.before)
		}
		e := serverEvent(state, notice{"n1", before, sightOf(n, c.now)})
		if e.Subject != "locks.event.server."+c.kind+".n1" || e.Type != "server."+c.kind || e.Status != c.status || len(e.URLs) != 1 {
			t.Errorf("%q to %q: %+v", c.before, c.now, e)
		}
	}
	if e := serverEvent(state, notice{"n9", "up\nnine", ""}); e.Type != "server.down" || e.Node != "n9" {
		t.Errorf("removed: %+v", e)
	}
	state.Settings.HideServers = true
	if e := serverEvent(state, notice{"n1", "", sightOf(n, statusUp)}); e.URLs != nil {
		t.Errorf("hidden: %+v", e)
	}
	for _, c := range []struct{ before, now, kind string }{
		{modeNormal, modeDegraded, "mode"}, {modeDegraded, modeNoQuorum, "down"}, {modeNoQuorum, modeDegraded, "up"},
	} {
		if e := clusterEvent(notice{aboutCluster, c.before, c.now}); e.Subject != "locks.event.cluster."+c.kind || e.Mode != c.now {
			t.Errorf("%s to %s: %+v", c.before, c.now, e)
		}
	}
}
