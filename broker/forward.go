package broker

import (
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/subjects"
)

// maxHops is how often a request is passed on, while its bucket changes hands.
const maxHops = 3

// The headers of a request that one node passes on to another.
const (
	headerZone    = "Zone"
	headerSubject = "Subject"
	headerReply   = "Reply"
	headerHops    = "Hops"
)

func forwardSubject(node uint64) string { return "node." + strconv.FormatUint(node, 10) + ".forward" }

// passedOn is the subscription of messages that came from another node and not from the zone's connection.
var passedOn = &nats.Subscription{}

// forward passes a request on to another node with the caller's own reply subject. Its user was proven by the server that
// took it; nodes trust each other.
func (l *links) forward(node uint64, t *task) {
	l.pass(node, t.zone.name, subjects.HotSubject(t.bucket, t.req.Op, t.in.User), t)
}

// pass passes a request on as if it had come on that subject.
func (l *links) pass(node uint64, zone, subject string, t *task) {
	msg := &nats.Msg{Subject: forwardSubject(node), Data: t.req.AppendJSON(nil), Header: nats.Header{
		headerZone:    {zone},
		headerSubject: {subject},
		headerReply:   {t.in.Reply},
		headerHops:    {strconv.Itoa(t.hops)},
	}}
	if err := l.conn.PublishMsg(msg); err != nil {
		l.d.metrics.unsent.Inc()
		l.d.log.Debug("a request could not be passed on", "node", node, "error", err)
	}
}

// forwarded gives a request from another node to its zone, as if it had come from there.
func (l *links) forwarded(msg *nats.Msg) {
	z := l.d.zone(msg.Header.Get(headerZone))
	hops, err := strconv.Atoi(msg.Header.Get(headerHops))
	if z == nil || err != nil || hops < 1 || hops > maxHops {
		l.d.metrics.misdirected.Inc()
		return
	}
	in := &nats.Msg{
		Subject: msg.Header.Get(headerSubject), Reply: msg.Header.Get(headerReply), Data: msg.Data,
		Header: nats.Header{headerHops: {strconv.Itoa(hops + 1)}}, Sub: passedOn,
	}
	select {
	case z.inbox <- in:
	default:
		l.d.metrics.dropped.Inc() // as the zone's connection does when the pump cannot follow
	}
}

// hops is how often a request has been passed on, and once more; 0 for one that came to the bucket's own subject.
func hops(addr subjects.Address, msg *nats.Msg) int {
	if msg.Sub == passedOn {
		n, err := strconv.Atoi(msg.Header.Get(headerHops))
		if err != nil {
			return maxHops
		}
		return n
	}
	if addr.Path == subjects.Hot {
		return 0
	}
	return 1
}
