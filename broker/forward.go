package broker

import (
	"slices"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker/parking"
	"github.com/opencluster/oclocks/bucket/replicated"
	"github.com/opencluster/oclocks/subjects"
)

// The headers of a request that one node passes on to another.
const (
	headerSubject = "Subject"
	headerReply   = "Reply"
	headerHops    = "Hops"
)

// forwardPrefix is where a node is passed requests on, in the zone's own account and not in that of the nodes: there they
// come behind what the first node's server has told of the caller's inbox. A request that overtook that would be answered to
// nobody. No user may publish there.
const forwardPrefix = "$OCLOCKS.forward."

func forwardSubject(node uint64) string { return forwardPrefix + strconv.FormatUint(node, 10) }

// passedOn is the subscription of messages that came from another node and not from the zone's connection.
var passedOn = &nats.Subscription{}

// forward passes a request on to another node, over the passage to it if it can.
func (s *shard) forward(t *task, node uint64) {
	if p := s.d.links.passage(node); p != nil && t.passable() && p.pass(t) {
		s.flushed(p)
		return
	}
	if t.via != nil { // the one that has passed it on knows a way that keeps the order, see forwardPrefix
		s.forgo(t, passBack)
		return
	}
	t.forward(node)
}

// passOn passes a request on at once, if another node is known to be its bucket's primary and there is a passage to it: it would be
// all that the shard does. What is known may be of a moment ago, as it may be there.
func (z *zone) passOn(t *task) bool {
	node := z.d.heads[t.bucket].Load()
	if node == 0 || t.trip.Hops != 1 || !t.passable() {
		return false
	}
	p := z.d.links.passage(node)
	if p == nil || !p.pass(t) {
		return false
	}
	if !slices.Contains(z.passages, p) {
		z.passages = append(z.passages, p)
	}
	return true
}

// flush sends what was passed on.
func (z *zone) flush() {
	for i, p := range z.passages {
		p.flush()
		z.passages[i] = nil
	}
	z.passages = z.passages[:0]
}

// head tells the pumps who is the primary of a bucket, if it is another node.
func (s *shard) head(c *cell) {
	node := uint64(0)
	if c.Turned() == replicated.Elsewhere {
		node = c.Chain().Primary().Node
	}
	if head := &s.d.heads[c.Number()]; head.Load() != node {
		head.Store(node)
	}
}

// forward passes a request on over NATS with the caller's own reply subject. Its user was proven by the server that
// took it; nodes trust each other. If nobody listens there NATS says so at once.
func (t *task) forward(node uint64) {
	z := t.zone
	z.d.metrics.routed.Inc()
	number, kept := z.outward.put(t)
	nobody := z.nobody(number)
	if !kept {
		nobody = z.nobodyFor(t.in.Reply)
	}
	err := z.pass(t, node, subjects.HotSubject(t.bucket, t.req.Op, t.in.User), nobody)
	switch {
	case err != nil && kept:
		z.unheard(number)
	case err != nil:
		t.refuse(noPrimary())
	case !kept:
		t.free()
	}
}

// pass passes a request on as if it had come on that subject.
func (z *zone) pass(t *task, node uint64, subject, reply string) error {
	return z.conn.PublishMsg(&nats.Msg{Subject: forwardSubject(node), Reply: reply, Data: t.req.AppendJSON(nil), Header: nats.Header{
		headerSubject: {subject},
		headerReply:   {t.in.Reply},
		headerHops:    {strconv.Itoa(t.trip.Hops)},
	}})
}

// forwarded unwraps a request from another node; nil if it is none.
func (z *zone) forwarded(msg *nats.Msg) *nats.Msg {
	hops, err := strconv.Atoi(msg.Header.Get(headerHops))
	if err != nil || hops < 1 || hops > parking.MaxHops {
		z.d.metrics.misdirected.Inc()
		return nil
	}
	return &nats.Msg{
		Subject: msg.Header.Get(headerSubject), Reply: msg.Header.Get(headerReply), Data: msg.Data,
		Header: nats.Header{headerHops: {strconv.Itoa(hops + 1)}}, Sub: passedOn,
	}
}

// hops is how often a request has been passed on, and once more; 0 for one that came to the bucket's own subject.
func hops(addr subjects.Address, msg *nats.Msg) int {
	if msg.Sub == passedOn {
		n, err := strconv.Atoi(msg.Header.Get(headerHops))
		if err != nil {
			return parking.MaxHops
		}
		return n
	}
	if addr.Path == subjects.Hot {
		return 0
	}
	return 1
}
