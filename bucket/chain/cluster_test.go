package chain

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// disk is what a node's journal has: it survives a crash.
type disk struct {
	state     State
	base      Point
	snapshot  []string // the table at base
	changes   []Change
	confirmed uint64
}

// length is how many changes there are, from the first on.
func (d *disk) length() int { return len(d.snapshot) + len(d.changes) }

// at is the text of a change, counted from 0.
func (d *disk) at(i int) string {
	if i < len(d.snapshot) {
		return d.snapshot[i]
	}
	return string(d.changes[i-len(d.snapshot)].Data)
}

func (d *disk) clone() disk {
	c := *d
	c.snapshot, c.changes = slices.Clone(d.snapshot), slices.Clone(d.changes)
	return c
}

// node is one copy with the caller's part around it. Its table is the list of everything that was applied, so that a
// snapshot of it can be compared change by change.
type node struct {
	id    uint64
	cfg   Config
	r     *Replica // nil: it is down
	disk  disk
	old   disk // an earlier state of the disk
	table []string
	views int // how many of the plane's views it has installed
	alert []Alert
	need  bool // a snapshot is wanted
	last  Output
}

// cluster is a set of pure copies with a network between them that somebody else drives.
type cluster struct {
	now    int64
	cfg    Config
	nodes  []*node
	flying []packet
	plane  plane
	check  checker
	trace  func(format string, args ...any)
	quiet  bool           // messages are not traced
	damage func(*Message) // a fault point: called with each message before it is encoded
}

type packet struct {
	from, to uint64
	raw      []byte
}

const second = int64(1e9)

func newCluster(cfg Config, n int) *cluster {
	c := &cluster{now: second, cfg: cfg, trace: func(string, ...any) {}}
	c.plane.leases = map[uint64]int64{}
	c.plane.reports = map[Member]Report{}
	c.check = newChecker()
	for i := range n {
		nd := &node{id: uint64(i + 1), cfg: cfg}
		nd.cfg.Self = Member{Node: nd.id, Inc: 1}
		c.nodes = append(c.nodes, nd)
		c.start(nd, Start{})
	}
	return c
}

func (c *cluster) node(id uint64) *node { return c.nodes[id-1] }

// start gives a node a life.
func (c *cluster) start(nd *node, start Start) {
	r, err := New(nd.cfg, start)
	if err != nil {
		panic(fmt.Sprintf("start node %d: %v", nd.id, err))
	}
	nd.r, nd.views = r, 0
	nd.disk.state = start.State
	c.check.remember(&nd.disk, 0)
	if rep := c.plane.reports[r.Self()]; rep.Epoch > start.State.Sealed {
		c.check.fail("%v said that it is sealed for epoch %d, and knows of %d", r.Self(), rep.Epoch, start.State.Sealed)
	}
	r.Tick(c.now)
	r.Join()
}

func (c *cluster) crash(nd *node) {
	nd.r, nd.table, nd.need = nil, nil, false
}

// restart begins again with what the journal has: the table as far as it is known to be confirmed.
func (c *cluster) restart(nd *node) {
	d := &nd.disk
	nd.table = slices.Clone(d.snapshot)
	for _, ch := range d.changes {
		if ch.Seq <= d.confirmed {
			nd.table = append(nd.table, string(ch.Data))
		}
	}
	c.start(nd, Start{State: d.state, Base: d.base, Changes: slices.Clone(d.changes), Confirmed: d.confirmed,
		Delivered: d.confirmed})
}

// lose begins again with an incarnation that never was, and with an old state of the disk or none.
func (c *cluster) lose(nd *node, keepOld bool) {
	inc := max(nd.cfg.Self.Inc, nd.disk.state.Self.Inc) + 1
	nd.cfg.Self.Inc = inc
	c.check.lost[nd.disk.state.Self] = true
	if keepOld {
		nd.disk = nd.old.clone()
	} else {
		nd.disk = disk{}
	}
	nd.disk.state = State{Self: nd.cfg.Self}
	c.restart(nd)
}

// ready carries out what a node wants. With die set the node dies after its journal was written and before anything is
// sent.
func (c *cluster) ready(nd *node, die bool) Output {
	known := nd.r.confirmed
	out := nd.r.Ready(c.now)
	nd.last = out
	before := min(nd.disk.confirmed, nd.r.log.last().Seq)
	if out.Restore != nil {
		before = out.Restore.Point.Seq
	}
	if out.Discard {
		before = 0
	}
	c.journal(nd, &out)
	if die {
		nd.disk.confirmed = before // what it has confirmed just now nobody has heard
		c.check.all(nd, c.now)
		c.crash(nd)
		return out
	}
	for _, m := range out.Messages {
		if c.damage != nil {
			c.damage(&m)
		}
		if !c.quiet {
			c.trace("%v", &m)
		}
		c.flying = append(c.flying, packet{from: nd.id, to: m.To.Node, raw: m.Encode(nil)})
	}
	for _, ch := range out.Deliver {
		if ch.Seq != uint64(len(nd.table))+1 {
			c.check.fail("node %d delivers change %d to a table of %d", nd.id, ch.Seq, len(nd.table))
		}
		nd.table = append(nd.table, string(ch.Data))
	}
	nd.need = out.NeedSnapshot
	if len(out.Alerts) > 0 {
		nd.alert = append(nd.alert, out.Alerts...)
	}
	c.describe(nd, &out)
	c.plane.hear(&out)
	c.check.output(nd, &out, known)
	c.check.sealed(nd, &out, c.plane.reports[nd.r.Self()])
	c.check.all(nd, c.now) // the last, since it takes the memory of this Output
	if out.Promoted > 0 {
		c.propose(nd, fmt.Sprintf("promote-e%d", out.Promoted))
	}
	return out
}

func (c *cluster) journal(nd *node, out *Output) {
	d := &nd.disk
	nd.old = d.clone()
	if out.Discard {
		*d = disk{state: d.state}
		nd.table = nil
	}
	if s := out.Restore; s != nil {
		var table []string
		if err := json.Unmarshal(s.Data, &table); err != nil {
			c.check.fail("node %d restores %v: %v", nd.id, s.Point, err)
		}
		*d = disk{state: d.state, base: s.Point, snapshot: slices.Clone(table)}
		nd.table = table
		d.confirmed = s.Point.Seq
	}
	if out.Truncate {
		if uint64(len(nd.table)) > out.TruncateTo {
			c.check.fail("node %d truncates to %d below its table of %d", nd.id, out.TruncateTo, len(nd.table))
		}
		d.changes = d.changes[:out.TruncateTo-d.base.Seq]
	}
	for _, ch := range out.Append {
		if ch.Seq != d.base.Seq+uint64(len(d.changes))+1 {
			c.check.fail("node %d appends change %d to a journal of %d", nd.id, ch.Seq, d.base.Seq+uint64(len(d.changes)))
		}
		d.changes = append(d.changes, ch)
	}
	if out.State != nil {
		d.state = *out.State
	}
	d.confirmed = max(d.confirmed, out.Confirmed)
	c.check.journaled(nd, out)
}

func (c *cluster) describe(nd *node, out *Output) {
	if out.Discard {
		c.trace("%v begins with nothing", nd.r.Self())
	}
	if out.Restore != nil {
		c.trace("%v restores %v", nd.r.Self(), out.Restore.Point)
	}
	if out.Truncate {
		c.trace("%v truncates to %d", nd.r.Self(), out.TruncateTo)
	}
	if out.Promoted > 0 {
		c.trace("%v promoted in epoch %d", nd.r.Self(), out.Promoted)
	}
	if out.Demoted {
		c.trace("%v demoted", nd.r.Self())
	}
	if out.Propose != nil {
		c.trace("%v proposes %v", nd.r.Self(), *out.Propose)
	}
	if out.Sealed != nil {
		c.trace("%v sealed for %d at %v failed=%v", nd.r.Self(), out.Sealed.Epoch, out.Sealed.Last, out.Sealed.Failed)
	}
	for _, a := range out.Alerts {
		c.trace("alert: %s", a.Text)
	}
}

func (c *cluster) propose(nd *node, data string) error {
	seq, err := nd.r.Propose([]byte(data))
	if err != nil {
		return err
	}
	if seq != uint64(len(nd.table))+1 {
		c.check.fail("node %d proposes change %d to a table of %d", nd.id, seq, len(nd.table))
	}
	nd.table = append(nd.table, data)
	return nil
}

// snapshot gives a node's table if it was asked for.
func (c *cluster) snapshot(nd *node) error {
	data, err := json.Marshal(nd.table)
	if err != nil {
		return err
	}
	nd.need = false
	return nd.r.Snapshot(uint64(len(nd.table)), data)
}

// deliver takes one message from the network.
func (c *cluster) deliver(i int) {
	p := c.flying[i]
	c.flying = slices.Delete(c.flying, i, i+1)
	nd := c.node(p.to)
	if nd.r == nil {
		return
	}
	m, err := Decode(p.raw)
	if err != nil {
		return // damaged on its way: the same as lost
	}
	nd.r.Tick(c.now)
	// What waits for the other node's incarnation is dropped there; everything else must be accepted.
	if err := nd.r.Receive(p.from, m); err != nil {
		c.check.fail("node %d receives %v: %v", nd.id, &m, err)
	}
}

// plane is a naive control plane: one mind that is never wrong about what it committed.
type plane struct {
	views     []View
	leases    map[uint64]int64 // until when a node may believe that it has one
	proposals []View
	reports   map[Member]Report
	not       Member // is not to be primary again
}

const leaseTime = 800 * second / 1000

func (p *plane) view() View { return p.views[len(p.views)-1] }

func (p *plane) hear(out *Output) {
	if out.Propose != nil {
		p.proposals = append(p.proposals, *out.Propose)
	}
	if out.Sealed != nil {
		p.reports[out.Sealed.Member] = *out.Sealed
	}
}

// commit is the compare-and-set on the epoch.
func (p *plane) commit(v View) bool {
	if len(p.views) > 0 && v.Epoch != p.view().Epoch+1 {
		return false
	}
	p.views = append(p.views, v)
	return true
}

// grant gives a node a lease under the newest change; the node counts from its own sending, and only 3/4.
func (c *cluster) grant(nd *node) {
	c.plane.leases[nd.id] = c.now + leaseTime
	if nd.r != nil {
		nd.r.Grant(Lease{Until: c.now + leaseTime*3/4, Under: uint64(len(c.plane.views))})
	}
}

// apply lets a node see the next view that it has not seen.
func (c *cluster) apply(nd *node) {
	if nd.views == len(c.plane.views) {
		return
	}
	if err := nd.r.Install(c.plane.views[nd.views]); err != nil {
		c.check.fail("node %d installs: %v", nd.id, err)
	}
	nd.views++
	nd.r.Applied(uint64(nd.views))
}

// ended says whether nothing can be answered under the newest view any more by this member.
func (c *cluster) ended(m Member) bool {
	r, sealed := c.plane.reports[m]
	return c.now >= c.plane.leases[m.Node] || sealed && r.Epoch >= c.plane.view().Epoch
}

func (p *plane) sealed() []Report {
	var out []Report
	for _, r := range p.reports {
		if r.Epoch >= p.view().Epoch && r.Member != p.not {
			out = append(out, r)
		}
	}
	slices.SortFunc(out, func(a, b Report) int {
		return int(a.Member.Node)*100 + int(a.Member.Inc) - int(b.Member.Node)*100 - int(b.Member.Inc)
	})
	return out
}

// takeOver commits what Takeover says, if it says anything.
func (c *cluster) takeOver() error {
	v := c.plane.view()
	if !c.ended(v.Primary()) {
		return fmt.Errorf("the lease of %v has not ended", v.Primary())
	}
	next, err := Takeover(v, c.cfg.Acks, c.plane.sealed())
	if err != nil {
		return err
	}
	c.plane.commit(next)
	return nil
}

// recover commits what Recover says.
func (c *cluster) recover() error {
	v := c.plane.view()
	for _, m := range v.Members() {
		if !c.ended(m) {
			return fmt.Errorf("the lease of %v has not ended", m)
		}
	}
	next, err := Recover(v, c.plane.sealed())
	if err != nil {
		return err
	}
	c.plane.commit(next)
	return nil
}

// String draws the cluster.
func (c *cluster) String() string {
	var b strings.Builder
	for _, v := range c.plane.views {
		fmt.Fprintf(&b, "view %v\n", v)
	}
	for _, nd := range c.nodes {
		if nd.r == nil {
			fmt.Fprintf(&b, "node %d down, journal to %d\n", nd.id, nd.disk.base.Seq+uint64(len(nd.disk.changes)))
			continue
		}
		fmt.Fprintf(&b, "%s\n", nd.r.Describe())
	}
	return b.String()
}
