package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/opencluster/oclocks/broker/control"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/subjects"
)

// maxPoor is how many buckets that are not as they should be are shown if nobody asks for certain ones.
const maxPoor = 256

// cluster describes the whole cluster to people.
func (z *zone) cluster(ctx context.Context, req *subjects.Request) subjects.Body {
	d := z.d
	h := d.health()
	switch {
	case h.state.Settings.HideServers:
		return &subjects.Refusal{Code: 403, Reason: subjects.ReasonDenied, Message: "this cluster does not tell its servers"}
	case req.Has&subjects.HasBuckets != 0 && int(req.LastBucket) >= len(h.state.Views):
		return &subjects.Refusal{Code: 400, Reason: subjects.ReasonBadRequest, Field: "buckets",
			Message: fmt.Sprintf("buckets: there are %d, the last is %d", len(h.state.Views), len(h.state.Views)-1)}
	}
	statuses, err := d.control.Cluster(ctx)
	if err != nil {
		d.log.Warn("the nodes cannot be asked how they are", "error", err)
		return &subjects.Refusal{Code: 503, Reason: subjects.ReasonUnavailable, RetryAfter: time.Second,
			Message: "the nodes cannot be asked now"}
	}
	p := picture{health: &h, status: d.status, told: make(map[uint64]nodeReport)}
	for i := range statuses {
		p.add(&statuses[i])
	}
	return p.draw(req, maxPage)
}

// picture puts together what the nodes say about themselves.
type picture struct {
	*health
	status func(n *shared.Node) string
	told   map[uint64]nodeReport // by number of the node
}

type nodeReport struct {
	*control.Status
	copies  []*CopyStatus // by bucket; nil where there is none
	partial bool          // only those that people should look at are among them
	direct  []uint64
}

func (p *picture) add(s *control.Status) {
	report := nodeReport{Status: s}
	var d description
	if len(s.Copies) > 0 && json.Unmarshal(s.Copies, &d) == nil { // else of another version: as if it had told nothing about them
		report.copies, report.partial, report.direct = d.Copies, d.Partial, d.Direct
	}
	p.told[s.Number] = report
}

// copy is what a node says about its copy of a bucket; nil if it does not.
func (p *picture) copy(node uint64, number uint32) *CopyStatus {
	if copies := p.told[node].copies; int(number) < len(copies) {
		return copies[number]
	}
	return nil
}

// draw makes the answer, of at most so many bytes: buckets that do not fit are left out.
func (p *picture) draw(req *subjects.Request, limit int) *subjects.Cluster {
	c := &subjects.Cluster{
		Cluster: p.state.Cluster, Change: p.state.Change, Mode: p.mode(), Total: p.state.Buckets(),
		Quorum: subjects.ClusterQuorum{Have: p.live, Need: p.state.Settings.MinQuorum},
		Nodes:  []subjects.ClusterNode{}, Buckets: []subjects.ClusterBucket{},
	}
	at := make(map[uint64]int)
	for i := range p.state.Nodes {
		n := p.node(&p.state.Nodes[i])
		if n.Leader {
			c.Leader = n.Number
		}
		at[n.Number] = len(c.Nodes)
		c.Nodes = append(c.Nodes, n)
	}
	asked := req.Has&subjects.HasBuckets != 0
	for number := range p.state.Buckets() {
		b := p.bucket(number)
		for _, one := range b.Copies {
			if i, known := at[one.Node]; known {
				count(&c.Nodes[i], &b, &one)
			}
		}
		switch {
		case asked && (number < req.FirstBucket || number > req.LastBucket), !asked && b.Problem == "":
		case !asked && len(c.Buckets) >= maxPoor:
			c.More++
		default:
			c.Buckets = append(c.Buckets, b)
		}
	}
	for len(c.Buckets) > 0 && len(c.AppendJSON(nil)) > limit {
		half := len(c.Buckets) / 2
		c.More += len(c.Buckets) - half
		c.Buckets = c.Buckets[:half]
	}
	return c
}

func (p *picture) node(n *shared.Node) subjects.ClusterNode {
	node := subjects.ClusterNode{Number: n.Number, Node: n.ID, Name: n.Name, Location: n.Location, Priority: n.Priority,
		Arbiter: n.Arbiter, Status: p.status(n)}
	s := p.told[n.Number].Status
	if s == nil {
		return node
	}
	node.Answered, node.Leader, node.Voter = true, s.Leading && !p.overtaken(s), s.Voter
	node.Change, node.Digest, node.Refused, node.Away = s.Change, hashText(s.Digest), s.Refused, s.Away
	node.Direct = p.told[n.Number].direct
	if s.Lease > 0 {
		node.Lease = s.Lease.Round(time.Millisecond).String()
	}
	return node
}

// overtaken says that another node leads in a later term.
func (p *picture) overtaken(s *control.Status) bool {
	for _, other := range p.told { // order: any will do
		if other.Leading && other.Term > s.Term {
			return true
		}
	}
	return false
}

// bucket puts together what the nodes say about one bucket. They say it at slightly different moments.
func (p *picture) bucket(number uint32) subjects.ClusterBucket {
	v := &p.state.Views[number]
	b := subjects.ClusterBucket{
		Bucket: number, Primary: v.Primary().Node, Epoch: v.Epoch, InSync: v.InSync, Recovery: v.Recovery,
		Chain: []uint64{}, Copies: []subjects.ClusterCopy{}, Problem: poor(p.state, number),
	}
	b.Degraded = v.Epoch > 0 && v.InSync == 1 && p.wanted() > 1
	for _, m := range v.Chain {
		b.Chain = append(b.Chain, m.Node)
	}
	head := p.copy(b.Primary, number)
	if head != nil {
		b.Acting = head.Acting
		if len(p.state.Zones) == 1 { // what one zone does is not another one's business
			b.Confirmed = head.Confirmed
		}
	}
	for i := range p.state.Nodes {
		own := p.copy(p.state.Nodes[i].Number, number)
		if own == nil || own.Role == chain.Outside.String() {
			continue // whether it should have one is asked below
		}
		one := compare(own, head)
		one.Node = p.state.Nodes[i].Number
		b.Copies = append(b.Copies, one)
		switch {
		case b.Problem != "":
		case own.Stopped != "":
			b.Problem = fmt.Sprintf("the copy of node %d must not be used: %s", one.Node, own.Stopped)
		case one.History == historyDiffers:
			b.Problem = fmt.Sprintf("the history of node %d differs from the primary's", one.Node)
		}
	}
	switch {
	case b.Problem != "":
	case p.told[b.Primary].Status == nil:
		b.Problem = "its primary does not answer"
	case head == nil && !p.told[b.Primary].partial:
		b.Problem = "its primary does not say that it has a copy"
	case head != nil && !head.Acting:
		b.Problem = "its primary may not act now"
	case p.unheard(v, number) != 0:
		b.Problem = fmt.Sprintf("node %d does not say that it has a copy", p.unheard(v, number))
	case len(b.Chain) < p.wanted():
		b.Problem = fmt.Sprintf("%d copies, and there should be %d", len(b.Chain), p.wanted())
	}
	return b
}

// unheard is the first node of the chain that answers and does not tell of its copy; 0 if there is none. One that does not
// answer at all is shown among the nodes.
func (p *picture) unheard(v *chain.View, number uint32) uint64 {
	for _, m := range v.Chain {
		if told := p.told[m.Node]; told.Status != nil && !told.partial && p.copy(m.Node, number) == nil {
			return m.Node
		}
	}
	return 0
}

// How a copy's history compares with the primary's.
const (
	historyEqual   = "equal"
	historyDiffers = "differs"
	historyBehind  = "behind"
	historyUnknown = "unknown"
)

// compare says how far a copy is. Histories that have the same number of changes, of one epoch, must be the same.
func compare(own, head *CopyStatus) subjects.ClusterCopy {
	one := subjects.ClusterCopy{Role: own.Role, Epoch: own.Epoch, Stopped: own.Stopped, History: historyUnknown}
	if head == nil || own.Epoch != head.Epoch {
		return one
	}
	switch {
	case own.Seq < head.Seq:
		one.Lag, one.History = head.Seq-own.Seq, historyBehind
	case own.Seq == head.Seq && own.Hash == head.Hash:
		one.History = historyEqual
	case own.Seq == head.Seq:
		one.History = historyDiffers
	}
	return one
}

// count adds a copy to what its node has.
func count(n *subjects.ClusterNode, b *subjects.ClusterBucket, one *subjects.ClusterCopy) {
	if one.Role == chain.Primary.String() || one.Role == chain.Secondary.String() {
		n.Copies++
	}
	n.Lag = max(n.Lag, one.Lag)
	if one.Node != b.Primary || !b.Acting {
		return
	}
	n.Primaries++
	if b.Degraded {
		n.Degraded++
	}
	if b.Recovery {
		n.Recovery++
	}
}
