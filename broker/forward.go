package broker

import (
	"strconv"

	"github.com/opencluster/oclocks/broker/natsd/inside"
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

// forward passes a request on to another node with the caller's own reply subject. Its user was proven by the server that
// took it; nodes trust each other.
func (t *task) forward(node uint64) {
	t.pass(node, subjects.HotSubject(t.bucket, t.req.Op, t.in.User))
}

// pass passes a request on as if it had come on that subject.
func (t *task) pass(node uint64, subject string) {
	header := inside.Header(headerSubject, subject, headerReply, t.in.Reply, headerHops, strconv.Itoa(t.trip.Hops))
	t.zone.put(forwardSubject(node), header, t.req.AppendJSON(nil))
	t.zone.conn.Kick()
}

// forwarded unwraps a request from another node; nil if it is none.
func (z *zone) forwarded(msg *message) *message {
	hops, err := strconv.Atoi(msg.header.Get(headerHops))
	if err != nil || hops < 1 || hops > parking.MaxHops {
		z.d.metrics.misdirected.Inc()
		return nil
	}
	return &message{subject: msg.header.Get(headerSubject), reply: msg.header.Get(headerReply), data: msg.data, passed: hops + 1}
}

// hops is how often a request has been passed on, and once more; 0 for one that came to the bucket's own subject.
func hops(addr subjects.Address, msg *message) int {
	switch {
	case msg.passed > 0:
		return msg.passed
	case addr.Path == subjects.Hot:
		return 0
	}
	return 1
}
