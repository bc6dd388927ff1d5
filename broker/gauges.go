package broker

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/opencluster/oclocks/bucket/chain"
)

// syncSample is one change of a bucket whose way to the end of the chain is being measured.
type syncSample struct {
	seq uint64 // 0: there is none
	at  int64  // when it was made, boot time in nanoseconds
}

// sample measures how long changes take to the end of the chain, one change of each bucket at a time.
func (s *shard) sample(c *cell) {
	tail, newest := c.Chain().Tail(), c.Table().Seq()
	switch {
	case tail == 0: // not the primary, or nothing has arrived anywhere
		c.sync = syncSample{}
	case c.sync.seq != 0 && tail >= c.sync.seq:
		s.d.metrics.sync.Observe(time.Duration(s.now.Boot - c.sync.at).Seconds())
		c.sync = syncSample{}
	}
	if c.sync.seq == 0 && tail != 0 && newest > tail {
		c.sync = syncSample{seq: newest, at: s.now.Boot}
	}
}

// nodeCollector tells what this node is in its cluster.
type nodeCollector struct{ d *Daemon }

var (
	descPrimaries = prometheus.NewDesc("oclocks_primaries", "Buckets that this node is asked about.", nil, nil)
	descCopies    = prometheus.NewDesc("oclocks_copies", "Copies of buckets on this node by role.", []string{"role"}, nil)
	descDegraded  = prometheus.NewDesc("oclocks_degraded_buckets", "Buckets of which this node has the only copy that counts, where there should be more.", nil, nil)
	descRecovery  = prometheus.NewDesc("oclocks_recovery_buckets", "Buckets of this node in which nothing is granted, since answered changes may be missing.", nil, nil)
	descLag       = prometheus.NewDesc("oclocks_chain_lag", "Changes that the end of the chain is behind, in the bucket of this node where it is most.", nil, nil)
	descLease     = prometheus.NewDesc("oclocks_node_lease_seconds", "What is left of this node's lease; 0: it may not act.", nil, nil)
	descLeader    = prometheus.NewDesc("oclocks_leader", "1 on the node that leads the control plane.", nil, nil)
	descLive      = prometheus.NewDesc("oclocks_live_nodes", "Nodes that hold a lease, as far as this node knows.", nil, nil)
	descDirect    = prometheus.NewDesc("oclocks_direct_links", "Nodes to which the chains' messages go directly; to the others they take the route, which is slower.", nil, nil)
	descUnlinked  = prometheus.NewDesc("oclocks_direct_links_lost_total", "Direct links that broke.", nil, nil)
	descChange    = prometheus.NewDesc("oclocks_change", "Change ID of the shared configuration that this node has.", nil, nil)
)

func (c *nodeCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		descPrimaries, descCopies, descDegraded, descRecovery, descLag, descLease, descLeader, descLive, descChange, descDirect, descUnlinked,
	} {
		ch <- desc
	}
}

// Collect tells nothing before the node knows who it is, and leaves out what a busy shard does not tell in time.
func (c *nodeCollector) Collect(ch chan<- prometheus.Metric) {
	d := c.d
	if d.state.Load() == nil || !d.ready.Load() {
		return
	}
	gauge := func(desc *prometheus.Desc, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, labels...)
	}
	h := d.health()
	gauge(descPrimaries, float64(d.primaries.Load()))
	gauge(descLease, d.leaseLeft().Seconds())
	gauge(descLive, float64(h.live))
	gauge(descChange, float64(h.state.Change))
	leads := 0.0
	if d.control.Leads() {
		leads = 1
	}
	gauge(descLeader, leads)
	if links := d.links.direct; links != nil {
		gauge(descDirect, float64(len(links.Up())))
		ch <- prometheus.MustNewConstMetric(descUnlinked, prometheus.CounterValue, float64(links.Lost()))
	}
	copies := d.copies()
	if copies == nil {
		return
	}
	t := tally(copies, h.wanted())
	for role, n := range t.roles {
		gauge(descCopies, float64(n), chain.Role(role).String())
	}
	gauge(descDegraded, float64(t.degraded))
	gauge(descRecovery, float64(t.recovery))
	gauge(descLag, float64(t.lag))
}

// copyTally is what the copies of this node come to.
type copyTally struct {
	roles              [chain.Primary + 1]int
	degraded, recovery int
	lag                uint64
}

func tally(copies []*CopyStatus, wanted int) (t copyTally) {
	for _, c := range copies {
		if c == nil {
			continue
		}
		for role := range t.roles {
			if c.Role == chain.Role(role).String() {
				t.roles[role]++
			}
		}
		if c.Role != chain.Primary.String() {
			continue
		}
		if c.Degraded && wanted > 1 {
			t.degraded++
		}
		if c.Recovery {
			t.recovery++
		}
		if c.Seq > c.Tail {
			t.lag = max(t.lag, c.Seq-c.Tail)
		}
	}
	return t
}
