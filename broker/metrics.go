package broker

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics are the daemon's counters; docs/operations.md lists them. Counts by zone come from the zones' own counters when
// they are asked for.
type metrics struct {
	registry    *prometheus.Registry
	answers     map[int]prometheus.Counter // by code; 0 is a success
	ignored     prometheus.Counter
	dropped     prometheus.Counter
	unsent      prometheus.Counter
	disconnects prometheus.Counter
	misdirected prometheus.Counter
	alerts      prometheus.Counter
	bundled     prometheus.Counter
	direct      prometheus.Counter // passed on
	routed      prometheus.Counter // likewise
	batches     prometheus.Histogram
	sync        prometheus.Histogram
}

var answerCodes = []int{0, 400, 403, 404, 408, 409, 410, 413, 421, 429, 503}

func newMetrics(d *Daemon) *metrics {
	m := &metrics{
		registry:    prometheus.NewRegistry(),
		answers:     make(map[int]prometheus.Counter),
		ignored:     counter("oclocks_ignored_requests_total", "Requests without a reply subject that the caller may use; they are not answered."),
		dropped:     counter("oclocks_connection_errors_total", "Errors on the daemon's connections into its zones, among them messages that were dropped under overload."),
		unsent:      counter("oclocks_unsent_answers_total", "Answers that could not be sent; the client asks again."),
		disconnects: counter("oclocks_client_disconnects_total", "Connections that their clients closed."),
		misdirected: counter("oclocks_misdirected_messages_total", "Messages between nodes that were damaged or not for this node."),
		bundled:     counter("oclocks_bundled_requests_total", "Requests that came with others in one message."),
		alerts:      counter("oclocks_alerts_total", "Alerts of any node of the cluster: something that people should look into."),
		batches: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "oclocks_batch_requests",
			Help: "Requests handled in one batch of a shard.", Buckets: prometheus.ExponentialBuckets(1, 2, 9)}),
		sync: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "oclocks_sync_seconds",
			Help: "Time until the last copy of the chain has a change; one change of a bucket at a time.", Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 12)}),
	}
	answers := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "oclocks_answers_total",
		Help: "Answers by code; 200 is a success."}, []string{"code"})
	for _, code := range answerCodes {
		label := strconv.Itoa(code)
		if code == 0 {
			label = "200"
		}
		m.answers[code] = answers.WithLabelValues(label)
	}
	passed := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "oclocks_passed_on_total",
		Help: "Requests that this node has passed on to another, over a direct link or over NATS."}, []string{"way"})
	m.direct, m.routed = passed.WithLabelValues("direct"), passed.WithLabelValues("nats")
	m.registry.MustRegister(answers, passed, m.ignored, m.dropped, m.unsent, m.disconnects, m.misdirected, m.bundled, m.alerts, m.batches, m.sync, &zoneCollector{d}, &nodeCollector{d},
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func counter(name, help string) prometheus.Counter {
	return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
}

func (m *metrics) answered(code int) {
	if c := m.answers[code]; c != nil {
		c.Inc()
	}
}

// zoneCollector tells what each zone has, and what the embedded server and the shards' queues hold.
type zoneCollector struct{ d *Daemon }

var (
	descHolds    = prometheus.NewDesc("oclocks_holds", "Holds in the zone.", []string{"zone"}, nil)
	descWaiters  = prometheus.NewDesc("oclocks_waiters", "Requests waiting for a lock in the zone.", []string{"zone"}, nil)
	descSessions = prometheus.NewDesc("oclocks_bucket_sessions", "Sessions of the zone, counted once for each bucket that knows them.", []string{"zone"}, nil)
	descRequests = prometheus.NewDesc("oclocks_requests_total", "Requests by operation.", []string{"zone", "op"}, nil)
	descClients  = prometheus.NewDesc("oclocks_clients", "Client connections of the zone on this node.", []string{"zone"}, nil)
	descSlow     = prometheus.NewDesc("oclocks_slow_consumers_total", "Connections closed because their clients did not read fast enough.", nil, nil)
	descReady    = prometheus.NewDesc("oclocks_ready", "1 while the node takes requests.", nil, nil)
)

func (c *zoneCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{descHolds, descWaiters, descSessions, descRequests, descClients, descSlow, descReady} {
		ch <- desc
	}
}

func (c *zoneCollector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(desc *prometheus.Desc, value int64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value), labels...)
	}
	for _, z := range *c.d.zones.Load() { // order: the registry sorts
		gauge(descHolds, z.holds.Load(), z.name)
		gauge(descWaiters, z.waiters.Load(), z.name)
		gauge(descSessions, z.sessionCount.Load(), z.name)
		for _, op := range servedOps[1:] {
			if n := z.stats.ops[op].requests.Load(); n > 0 {
				ch <- prometheus.MustNewConstMetric(descRequests, prometheus.CounterValue, float64(n), z.name, op.String())
			}
		}
	}
	if c.d.nats != nil {
		stats := c.d.nats.Stats()
		for zone, n := range stats.Connections { // order: the registry sorts
			gauge(descClients, int64(n), zone)
		}
		ch <- prometheus.MustNewConstMetric(descSlow, prometheus.CounterValue, float64(stats.SlowConsumers))
	}
	ready := int64(0)
	if c.d.ready.Load() {
		ready = 1
	}
	gauge(descReady, ready)
}
