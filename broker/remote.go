package broker

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker/edge"
	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

// What one node asks another about its buckets, on node.<number>.gather: the request's JSON is the body, and the rest is in
// headers, since a list must not be JSON within JSON.
const (
	headerZone     = "Zone"
	headerOp       = "Op"
	headerUser     = "User"
	headerSession  = "Session"  // bucket.Session as JSON, verified by the node that asks
	headerBuckets  = "Buckets"  // asked for, or answered for
	headerCount    = "Count"    // of all buckets, where it was answered
	headerReleased = "Released" // session-close: holds
	headerRefused  = "Refused"  // the body is a refusal
)

func gatherSubject(node uint64) string { return "node." + strconv.FormatUint(node, 10) + ".gather" }

// question is what another node is asked.
type question struct {
	zone   string
	in     *bucket.Input
	req    *subjects.Request
	wanted edge.BucketSet
}

func (q *question) message(node uint64) (*nats.Msg, error) {
	session, err := json.Marshal(q.in.Session)
	if err != nil {
		return nil, fmt.Errorf("tell another node of a session: %w", err)
	}
	return &nats.Msg{Subject: gatherSubject(node), Data: q.req.AppendJSON(nil), Header: nats.Header{
		headerZone: {q.zone}, headerOp: {q.req.Op.String()}, headerUser: {q.in.User},
		headerSession: {string(session)}, headerBuckets: {q.wanted.Text()},
	}}, nil
}

// readQuestion reads what message wrote.
func readQuestion(msg *nats.Msg) (*question, error) {
	q := &question{zone: msg.Header.Get(headerZone), req: new(subjects.Request)}
	q.in = &bucket.Input{Kind: bucket.Request, Zone: q.zone, User: msg.Header.Get(headerUser), Reply: edge.ShareReply}
	op, ok := subjects.ParseOp(msg.Header.Get(headerOp))
	if !ok || op != subjects.OpList && op != subjects.OpSessionClose {
		return nil, fmt.Errorf("%w: %q is not asked of other nodes", errPart, msg.Header.Get(headerOp))
	}
	if refusal := q.req.Decode(op, msg.Data); refusal != nil {
		return nil, fmt.Errorf("%w: %w", errPart, refusal)
	}
	if err := json.Unmarshal([]byte(msg.Header.Get(headerSession)), &q.in.Session); err != nil {
		return nil, fmt.Errorf("%w: session: %w", errPart, err)
	}
	var err error
	if q.wanted, err = edge.ReadBucketSet(msg.Header.Get(headerBuckets)); err != nil {
		return nil, fmt.Errorf("%w: %w", errPart, err)
	}
	return q, nil
}

// partMessage is a part for the node that asked. A page is cut so that it fits.
func partMessage(p *edge.Part) *nats.Msg {
	msg := &nats.Msg{Header: nats.Header{
		headerBuckets: {p.Covered.Text()}, headerReleased: {strconv.Itoa(p.Released)}, headerCount: {strconv.Itoa(p.Buckets)},
	}}
	switch {
	case p.Refusal != nil:
		msg.Header.Set(headerRefused, "1")
		msg.Data = p.Refusal.AppendJSON(nil)
	case p.Page != nil:
		msg.Data = edge.Fit(p.Page, nil, maxPage)
	}
	return msg
}

// readPart reads what partMessage wrote.
func readPart(msg *nats.Msg) (*edge.Part, error) {
	if msg.Header.Get(headerRefused) != "" {
		refusal, ok := subjects.DecodeRefusal(msg.Data)
		if !ok {
			return nil, fmt.Errorf("%w: not a refusal", errPart)
		}
		return &edge.Part{Refusal: refusal}, nil
	}
	p := new(edge.Part)
	var err error
	if p.Covered, err = edge.ReadBucketSet(msg.Header.Get(headerBuckets)); err != nil {
		return nil, fmt.Errorf("%w: %w", errPart, err)
	}
	if p.Buckets, err = strconv.Atoi(msg.Header.Get(headerCount)); err != nil {
		return nil, fmt.Errorf("%w: %w", errPart, err)
	}
	if p.Released, err = strconv.Atoi(msg.Header.Get(headerReleased)); err != nil {
		return nil, fmt.Errorf("%w: %w", errPart, err)
	}
	if len(msg.Data) > 0 {
		p.Page = new(subjects.Page)
		if err := p.Page.DecodeJSON(msg.Data); err != nil {
			return nil, fmt.Errorf("%w: %w", errPart, err)
		}
	}
	return p, nil
}

// ask asks another node about some of its buckets. Nil: it did not answer in time, or not in a way that can be used.
func (l *links) ask(ctx context.Context, node uint64, q *question) *edge.Part {
	msg, err := q.message(node)
	if err != nil {
		l.d.log.Error("ask another node", "node", node, "error", err)
		return nil
	}
	answer, err := l.conn.RequestMsgWithContext(ctx, msg) // a node that is not there is known at once
	if err != nil {
		l.d.log.Debug("another node does not answer for its buckets", "node", node, "error", err)
		return nil
	}
	p, err := readPart(answer)
	if err != nil {
		l.d.metrics.misdirected.Inc()
		l.d.log.Warn("another node's answer for its buckets cannot be read", "node", node, "error", err)
		return nil
	}
	return p
}

// asked answers another node for the buckets that this one is primary of.
func (l *links) asked(msg *nats.Msg) {
	q, err := readQuestion(msg)
	if err != nil {
		l.d.metrics.misdirected.Inc()
		l.d.log.Warn("another node's question about buckets cannot be read", "error", err)
		return
	}
	z := l.d.zone(q.zone)
	if z == nil || z.stopping.Load() {
		l.respond(msg.Reply, &edge.Part{}) // it answers for no bucket: they are asked for again, here or elsewhere
		return
	}
	z.gather(q.in, q.req, len(msg.Data), q.wanted, func(p *edge.Part) { l.respond(msg.Reply, p) })
}

func (l *links) respond(reply string, p *edge.Part) {
	msg := partMessage(p)
	msg.Subject = reply
	if err := l.conn.PublishMsg(msg); err != nil {
		l.d.metrics.unsent.Inc()
		l.d.log.Debug("an answer to another node could not be sent", "error", err)
	}
}

// pingAt has another node answer a ping, for its response time from where the client is asking.
func (z *zone) pingAt(t *task) *subjects.Refusal {
	node := z.d.state.Load().NodeByID(t.req.Node)
	switch {
	case node == nil || node.Arbiter || t.trip.Hops > 1:
		return &subjects.Refusal{Code: 400, Reason: subjects.ReasonBadRequest, Field: "node",
			Message: "node: there is no node " + t.req.Node + "; `servers` lists them"}
	case z.d.peers.gone(node.Number):
		return &subjects.Refusal{Code: 503, Reason: subjects.ReasonUnavailable, RetryAfter: pingAgain,
			Message: "the node " + t.req.Node + " cannot be reached now"}
	}
	if err := z.pass(t, node.Number, subjects.SimpleSubject(t.req.Op, t.in.User), ""); err != nil {
		z.unsent(err)
	}
	t.free()
	return nil
}
