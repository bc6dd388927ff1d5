package client

import (
	"strconv"
	"strings"

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
// A node is asked first whether it takes bundles, when there is one to be sent. Where nobody listens for a bundle, each of its requests is told.

// askAgain is how long after a question that was not answered the next one may be asked.
const askAgain = int64(10e9)

// bundling is what an outlet knows of bundles.
type bundling struct {
	node     string // that the connection leads to; "" if that is not known
	question string // the newest one's token: does the node take bundles?
	askedAt  int64
	taken    bool // it does
}

// roads is what a client knows of the buckets of its home connection's node. It is guarded by Client.mu.
type roads struct {
	near      map[uint32]bool // that node has told of itself as the primary in the newest grant
	newest    uint64          // token of a call that was sent: lower ones were registered before, and may be repetitions
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

// joins says whether what the machine sends over an outlet may be in a bundle. The caller holds mu.
func (c *Client) joins(o *outlet, a *machine.Action) bool {
	number, operation, ok := hotSubject(a.Subject)
	if !ok {
		return false
	}
	_, token := cutToken(a.Reply)
	id, first := c.first(token)
	if op, _ := subjects.ParseOp(operation); id == 0 || !op.Bundled() || o.node == "" {
		return false
	}
	if o != c.home {
		return true
	}
	bucket, err := strconv.ParseUint(number, 10, 32)
	if err != nil || !c.roads.near[uint32(bucket)] {
		return false
	}
	if !first {
		delete(c.roads.near, uint32(bucket))
	}
	return first
}

// first gives the number of a call's token, and whether nothing that was registered later was sent.
func (c *Client) first(token string) (id uint64, first bool) {
	id, ok := callID(token)
	if !ok {
		return 0, false
	}
	first = id > c.roads.newest
	c.roads.newest = max(c.roads.newest, id)
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
		if !o.taken && queue[i].joins {
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

// takes says that the node that was asked with a question takes bundles.
func (c *Client) takes(question string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.home.question == question {
		c.home.taken = true
	}
	for _, l := range c.lanes {
		if l != nil && l.question == question {
			l.taken = true
		}
	}
}
