package client

import (
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/internal/boottime"
	"github.com/opencluster/oclocks/internal/machine"
	"github.com/opencluster/oclocks/subjects"
)

// Requests that leave over one connection at the same time, for buckets of the node that it leads to, go to that node in one message, a
// bundle; answers come back in sheaves likewise (docs/protocol.md, "Many at once"). The machine knows nothing of it. What may be in a bundle:
//
//   - What goes over a lane, for that is for its node.
//   - What goes home for a bucket that the home connection's node is known to have (roads), and that is sent for the first time. A node that
//     stands still and has lost the bucket would take each repetition, too, which the bucket's own subject brings to the new primary.
//
// A node is asked first whether it takes bundles, when there is one to be sent. What is in a bundle that nobody hears, or that is refused as a
// whole, is sent again at once, each request by itself, and the node is asked again later.

// askAgain is how long after a question that was not answered the next one may be asked.
const askAgain = int64(10e9)

// bundling is what an outlet knows of bundles.
type bundling struct {
	node     string // that the connection leads to; "" if that is not known
	question string // the newest one's token: does the node take bundles?
	askedAt  int64
	limits   subjects.BundleLimits // it takes so much; nothing: it is not known to take any
	denied   bool                  // the server lets none through
}

// roads is what a client knows of the buckets of its home connection's node. It is guarded by Client.mu.
type roads struct {
	near      map[uint32]bool // that node has told of itself as the primary in the newest grant
	newest    uint64          // call that was sent: lower ones were registered before, and may be repetitions
	questions uint64
}

// hotSubject gives the number and the operation of a bucket's own subject.
func hotSubject(subject string) (bucket, op string, ok bool) {
	rest, ok := strings.CutPrefix(subject, "locks.b.")
	if !ok {
		return "", "", false
	}
	bucket, rest, _ = strings.Cut(rest, ".")
	op, _, ok = strings.Cut(rest, ".")
	return bucket, op, ok
}

// joins gives the operation of what the machine sends over an outlet, if that may be in a bundle, else "". The caller holds mu.
func (c *Client) joins(o *outlet, subject, token string) (op string) {
	number, op, ok := hotSubject(subject)
	if !ok {
		return ""
	}
	id, first := c.first(token)
	if kind, _ := subjects.ParseOp(op); id == 0 || !kind.Bundled() || o.node == "" {
		return ""
	}
	if o != c.home {
		return op
	}
	bucket, err := strconv.ParseUint(number, 10, 32)
	if err != nil || !c.roads.near[uint32(bucket)] {
		return ""
	}
	if !first {
		delete(c.roads.near, uint32(bucket))
		return ""
	}
	return op
}

// first gives the number of a call's token, and whether nothing that was registered later was sent.
func (c *Client) first(token string) (id uint64, first bool) {
	id, ok := callID(token)
	if !ok {
		return 0, false
	}
	call := machine.CallOf(id)
	first = call > c.roads.newest
	c.roads.newest = max(c.roads.newest, call)
	return id, first
}

// callID reads the reply token of a call.
func callID(token string) (id uint64, ok bool) {
	if len(token) < 2 || token[0] != 'c' {
		return 0, false
	}
	id, err := strconv.ParseUint(token[1:], 36, 64)
	return id, err == nil
}

// cutToken takes the last token from a reply subject.
func cutToken(reply string) (inbox, token string) {
	i := strings.LastIndexByte(reply, '.') + 1
	return reply[:i], reply[i:]
}

// leads says that the home connection leads to a node from now on. The caller holds mu.
func (c *Client) leads(node string) {
	c.home.bundling = bundling{node: node}
	clear(c.roads.near)
}

// learn takes the word of a grant. The caller holds mu.
func (c *Client) learn(g *subjects.Grant) {
	if g.Node != "" && g.Node == c.home.node {
		c.roads.near[g.Bucket] = true
	} else {
		delete(c.roads.near, g.Bucket)
	}
}

// ask gives a question if there is one to be asked: where several messages could have been one. The caller holds mu.
func (o *outlet) ask(queue []outgoing) (inbox, token string) {
	joining := 0
	for i := range queue {
		if queue[i].op != "" && o.limits.Requests == 0 && !o.denied {
			inbox = queue[i].inbox
			joining++
		}
	}
	if joining < 2 {
		return "", ""
	}
	if now := boottime.Now(); o.question == "" || now-o.askedAt >= askAgain {
		o.c.roads.questions++
		o.question, o.askedAt = "q"+strconv.FormatUint(o.c.roads.questions, 36), now
		return inbox, o.question
	}
	return "", ""
}

// outletWith gives the outlet that is the right one, nil if there is none. The caller holds mu.
func (c *Client) outletWith(right func(o *outlet) bool) *outlet {
	if right(c.home) {
		return c.home
	}
	for _, l := range c.lanes {
		if l != nil && right(l.outlet) {
			return l.outlet
		}
	}
	return nil
}

// takes takes the answer to a question.
func (c *Client) takes(question string, answer []byte) {
	var limits subjects.BundleLimits
	if err := limits.DecodeJSON(answer); err != nil {
		c.opts.log.Debug("read how many requests may go in one message", "error", err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.outletWith(func(o *outlet) bool { return o.question == question }); o != nil {
		o.limits = limits
	}
}

// denies says that the server does not let a message through on a subject. It says whether that is one of bundles.
func (c *Client) denies(nc *nats.Conn, subject string) bool {
	if !subjects.IsBundleSubject(subject) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if o := c.outletWith(func(o *outlet) bool { return o.nc == nc }); o != nil {
		o.limits, o.denied = subjects.BundleLimits{}, true
	}
	return true
}

// apart has each request of a bundle sent again by itself. The caller holds mu. What went over a lane goes home at once; what went home is repeated
// by the machine in a moment, as after the word of a node that is not the primary and knows no newer map.
func (c *Client) apart(now int64, subject, tokens string) {
	clear(c.roads.near)
	inbox, _ := cutToken(subject)
	home := inbox == c.inbox
	if o := c.outletWith(func(o *outlet) bool { return c.inbox+o.inbox == inbox }); o != nil {
		o.limits = subjects.BundleLimits{}
	}
	for token := range subjects.BundleTokens(tokens) {
		switch id, ok := callID(token); {
		case !ok:
		case home:
			c.m.Reply(now, id, nil, notTaken)
		default:
			c.m.Unreachable(now, id)
		}
	}
}

var notTaken = &subjects.Refusal{
	Code: 421, Reason: subjects.ReasonMoved, Message: "the node does not take several requests in one message", Map: &subjects.Map{},
}
