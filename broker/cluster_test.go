package broker

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/opencluster/oclocks/broker/control"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/subjects"
)

// testPicture is a cluster of nodes 1 to 3 whose buckets are all in order: bucket b has the primary b%3+1.
func testPicture(t *testing.T, buckets int, change func(node uint64, c *CopyStatus) bool) *picture {
	t.Helper()
	state := &shared.State{Cluster: "c", Change: 9, Zones: []conf.Zone{{Name: "z"}}, Settings: shared.Settings{MinQuorum: 2}}
	copies := make(map[uint64][]*CopyStatus)
	for node := uint64(1); node <= 3; node++ {
		state.Nodes = append(state.Nodes, shared.Node{Number: node, ID: fmt.Sprint("n", node)})
		copies[node] = make([]*CopyStatus, buckets)
	}
	for number := range buckets {
		first := uint64(number % 3)
		v := chain.View{Epoch: 4, InSync: 2}
		for i := range uint64(3) {
			node := (first+i)%3 + 1
			v.Chain = append(v.Chain, chain.Member{Node: node})
			c := &CopyStatus{Bucket: uint32(number), Role: "secondary", Epoch: 4, Seq: 10, Hash: "ab", Confirmed: 10}
			if i == 0 {
				c.Role, c.Acting = "primary", true
			}
			if change == nil || change(node, c) {
				copies[node][number] = c
			}
		}
		state.Views = append(state.Views, v)
	}
	p := &picture{health: &health{state: state, gone: func(uint64) bool { return false }, leased: true, live: 3},
		status: func(*shared.Node) string { return statusUp }, told: make(map[uint64]nodeReport)}
	for node := uint64(1); node <= 3; node++ {
		text, err := json.Marshal(description{Copies: copies[node]})
		if err != nil {
			t.Fatal(err)
		}
		p.add(&control.Status{Number: node, Leading: node < 3, Term: node, Change: 9, Digest: 0xab, Lease: 123456 * time.Microsecond, Copies: text})
	}
	return p
}

func all(first, last uint32) *subjects.Request {
	return &subjects.Request{Op: subjects.OpCluster, Has: subjects.HasBuckets, FirstBucket: first, LastBucket: last}
}

func TestPictureOfAHealthyCluster(t *testing.T) {
	p := testPicture(t, 6, nil)
	c := p.draw(&subjects.Request{Op: subjects.OpCluster}, maxPage)
	if c.Mode != modeNormal || len(c.Buckets) != 0 || c.More != 0 || c.Leader != 2 || c.Total != 6 || len(c.Nodes) != 3 {
		t.Errorf("%+v", c)
	}
	for i, n := range c.Nodes {
		if n.Primaries != 2 || n.Copies != 6 || n.Degraded+n.Recovery != 0 || n.Lag != 0 || n.Lease != "123ms" ||
			n.Digest != "00000000000000ab" || n.Leader != (i == 1) {
			t.Errorf("%+v", n)
		}
	}
	c = p.draw(all(2, 3), maxPage)
	if len(c.Buckets) != 2 || c.Buckets[0].Bucket != 2 || len(c.Buckets[0].Copies) != 3 || c.Buckets[0].Confirmed != 10 {
		t.Errorf("%+v", c.Buckets)
	}
	for _, one := range c.Buckets[0].Copies {
		if one.History != historyEqual || one.Lag != 0 {
			t.Errorf("%+v", one)
		}
	}
}

// What is wrong with a bucket is shown without asking for it.
func TestPictureShowsWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		node   uint64 // whose copy of bucket 0 is changed; 1 is the primary
		change func(c *CopyStatus)
		state  func(p *picture)
		want   string
	}{
		"stopped": {node: 2, change: func(c *CopyStatus) { c.Stopped = "broken" }, want: "node 2 must not be used: broken"},
		"differs": {node: 3, change: func(c *CopyStatus) { c.Hash = "cd" }, want: "history of node 3 differs"},
		"no act":  {node: 1, change: func(c *CopyStatus) { c.Acting = false }, want: "may not act"},
		"silent":  {state: func(p *picture) { delete(p.told, 1) }, want: "does not answer"},
		"no head": {state: func(p *picture) { p.told[1].copies[0] = nil }, want: "its primary does not say"},
		"no copy": {state: func(p *picture) { p.told[3].copies[0] = nil }, want: "node 3 does not say"},
		"unread":  {state: func(p *picture) { p.told[1] = nodeReport{Status: p.told[1].Status} }, want: "its primary does not say"},
		"partial": {state: func(p *picture) { p.told[1] = nodeReport{Status: p.told[1].Status, partial: true} }},
		"alone":   {state: func(p *picture) { p.state.Views[0].InSync = 1 }, want: "answers alone"},
		"short":   {state: func(p *picture) { p.state.Views[0].Chain = p.state.Views[0].Chain[:2] }, want: "2 copies, and there should be 3"},
		"recover": {state: func(p *picture) { p.state.Views[0].Recovery = true }, want: "recovery"},
		"none":    {state: func(p *picture) { p.state.Views[0] = chain.View{} }, want: "no primary yet"},
		"behind":  {node: 2, change: func(c *CopyStatus) { c.Seq = 7 }},
		"ahead":   {node: 2, change: func(c *CopyStatus) { c.Seq, c.Hash = 12, "ef" }}, // asked a moment later
		"unlike":  {node: 2, change: func(c *CopyStatus) { c.Epoch, c.Hash = 3, "ef" }},
	} {
		p := testPicture(t, 2, func(node uint64, copy *CopyStatus) bool {
			if copy.Bucket == 0 && node == c.node {
				c.change(copy)
			}
			return true
		})
		if c.state != nil {
			c.state(p)
		}
		buckets := p.draw(&subjects.Request{Op: subjects.OpCluster}, maxPage).Buckets
		switch {
		case c.want == "" && len(buckets) != 0:
			t.Errorf("%s: %+v", name, buckets)
		case c.want != "" && (len(buckets) != 1 && name != "silent" && name != "unread" || !strings.Contains(buckets[0].Problem, c.want)):
			t.Errorf("%s: %+v, want %s", name, buckets, c.want)
		}
	}
	p := testPicture(t, 1, func(node uint64, c *CopyStatus) bool {
		c.Seq -= node - 1
		return true
	})
	p.state.Zones = append(p.state.Zones, conf.Zone{Name: "another"})
	c := p.draw(all(0, 0), maxPage)
	if c.Nodes[2].Lag != 2 || c.Buckets[0].Copies[1].Lag != 1 || c.Buckets[0].Copies[1].History != historyBehind || c.Buckets[0].Confirmed != 0 {
		t.Errorf("%+v", c)
	}
}

// However many buckets there are, the answer fits into a message and says how much it leaves out.
func TestPictureFits(t *testing.T) {
	p := testPicture(t, 400, func(_ uint64, c *CopyStatus) bool { c.Stopped = "broken"; return true })
	c := p.draw(&subjects.Request{Op: subjects.OpCluster}, maxPage)
	if len(c.Buckets) != maxPoor || c.More != 400-maxPoor {
		t.Errorf("%d buckets and %d more", len(c.Buckets), c.More)
	}
	c = p.draw(all(0, 399), 20<<10)
	if len(c.AppendJSON(nil)) > 20<<10 || len(c.Buckets) == 0 || len(c.Buckets)+c.More != 400 {
		t.Errorf("%d buckets and %d more", len(c.Buckets), c.More)
	}
}
