package broker

import (
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker/parking"
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

// forward passes a request on to another node with the caller's own reply subject. Its user was proven by the server that
// took it; nodes trust each other.
func (t *task) forward(node uint64) {
	t.pass(node, subjects.HotSubject(t.bucket, t.req.Op, t.in.User))
}

// pass passes a request on as if it had come on that subject.
func (t *task) pass(node uint64, subject string) {
	msg := &nats.Msg{Subject: forwardSubject(node), Data: t.req.AppendJSON(nil), Header: nats.Header{
		headerSubject: {subject},
		headerReply:   {t.in.Reply},
		headerHops:    {strconv.Itoa(t.trip.Hops)},
	}}
	if err := t.zone.conn.PublishMsg(msg); err != nil {
		t.zone.unsent(err)
	}
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
