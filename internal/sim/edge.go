package sim

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"

	"github.com/opencluster/oclocks/broker/edge"
	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

// This file stands for broker/pump.go, local.go, gather.go, collect.go and system.go.

// clusterSecret is what tokens are signed with.
var clusterSecret = []byte("0123456789abcdef0123456789abcdef")

// The times of broker/collect.go.
const (
	collectTime = 2 * second
	askTime     = 600 * ms
	againTime   = 40 * ms
)

// pump is zone.receive: check, decode, answer or queue.
func (p *process) pump(l *letter) {
	if !p.serving {
		return
	}
	if !subjects.ValidReply(l.reply, l.addr.User, false) {
		p.w.fail("%v is asked to answer %s to %s", p.m, l.addr.User, l.reply)
		return
	}
	t := &task{}
	if l.addr.Path != subjects.Hot {
		t.trip.Hops = 1
	}
	everybody := l.addr.Op == subjects.OpKeep && l.addr.Path == subjects.Simple
	t.in = bucket.Input{Kind: bucket.Request, Zone: l.zone, User: l.addr.User, Reply: l.reply}
	if refusal := p.prepare(t, l); refusal != nil {
		if !everybody || l.group {
			p.answer(t, refusal)
		}
		return
	}
	if body := p.local(t); body != nil {
		p.answer(t, body)
		return
	}
	switch {
	case t.req.Op.OnName():
		t.bucket = l.addr.Bucket
		p.receive(t)
	case t.req.Op == subjects.OpKeep:
		p.keep(t, l)
	default:
		p.collect(t)
	}
}

// prepare decodes the request and verifies its session.
func (p *process) prepare(t *task, l *letter) *subjects.Refusal {
	var refusal *subjects.Refusal
	if l.addr.Path == subjects.Simple {
		refusal = t.req.DecodeSimple(l.addr.Op, l.body, nil)
	} else {
		refusal = t.req.Decode(l.addr.Op, l.body)
	}
	if refusal != nil || t.req.Session == "" {
		return refusal
	}
	session, err := p.sessionsOf(l.zone).Verify(l.addr.User, t.req.Session)
	if err != nil {
		p.w.fail("%v: the session of %s in %s: %v", p.m, l.addr.User, l.zone, err)
		return &subjects.Refusal{Code: 410, Reason: subjects.ReasonSession}
	}
	if other := p.w.zoneAfter(l.zone); other != l.zone {
		if _, err := p.sessionsOf(other).Verify(l.addr.User, t.req.Session); err == nil {
			p.w.fail("%v: a session of zone %s is one of %s", p.m, l.zone, other)
		}
	}
	t.in.Session = session
	return nil
}

func (p *process) sessionsOf(zone string) *edge.Sessions {
	s := p.sessions[zone]
	if s == nil {
		s = edge.NewSessions(clusterSecret, zone)
		p.sessions[zone] = s
	}
	return s
}

// local answers the operations that need no lock table; nil for the others.
func (p *process) local(t *task) subjects.Body {
	switch t.req.Op {
	case subjects.OpInfo:
		return &subjects.Info{Buckets: p.count, Map: p.bucketMap(), MaxLease: p.state.Settings.MaxLease}
	case subjects.OpSessionOpen:
		var random [edge.SessionRawLen]byte
		binary.BigEndian.PutUint64(random[:], p.w.rnd.Uint64())
		leases := edge.Leases{Default: p.state.Settings.SessionLease, Max: p.state.Settings.MaxLease}
		opened, refusal, err := p.sessionsOf(t.in.Zone).Open(p.m.wall(), edge.NewID(random), t.in.User, &t.req, leases)
		switch {
		case err != nil:
			p.w.fail("%v opens a session: %v", p.m, err)
		case refusal != nil:
			return refusal
		}
		opened.Node = p.m.id
		return opened
	case subjects.OpSessionClose, subjects.OpKeep:
		if t.in.Session.ID == "" {
			return &subjects.Refusal{Code: 400, Reason: subjects.ReasonBadRequest, Field: "session"}
		}
	}
	return nil
}

// bucketMap is Daemon.bucketMap.
func (p *process) bucketMap() subjects.Map {
	m := subjects.Map{Change: p.state.Change, Primary: make([]string, len(p.state.Views))}
	for i := range p.state.Views {
		if p.state.Views[i].Epoch == 0 {
			continue
		}
		if n := p.state.Node(p.state.Views[i].Primary().Node); n != nil {
			m.Primary[i] = n.ID
		}
	}
	return m
}

// gathering is what the shards of a node are asked together.
type gathering struct {
	pending int
	shares  []*edge.Share
	done    func(shares []*edge.Share)
}

func (g *gathering) report() {
	if g.pending--; g.pending == 0 {
		g.done(g.shares)
	}
}

// scatter queues a request for all shards.
func (p *process) scatter(in bucket.Input, req subjects.Request, wanted edge.BucketSet, done func(shares []*edge.Share)) {
	g := &gathering{pending: len(p.shards), done: done}
	buckets := int(p.count)
	for _, s := range p.shards {
		s.put(func() {
			for _, c := range s.cells {
				if !edge.Covers(c.Bucket, req.Op, &in, wanted, buckets) {
					continue
				}
				s.touch(c)
				if one := edge.Ask(c.Bucket, s.now, &in, &req); one != nil {
					g.pending++
					g.shares = append(g.shares, one)
					c.Wait(func(lost bool) {
						one.Lost = lost
						g.report()
					})
				}
			}
			s.reports = append(s.reports, g.report)
		})
	}
}

// keep is zone.keep.
func (p *process) keep(t *task, l *letter) {
	kept := subjects.Kept{Node: p.m.id, Beat: t.req.Beat, Lease: edge.Promise(&t.in.Session, p.state.Settings.MaxLease)}
	everybody := l.addr.Path == subjects.Simple
	p.scatter(t.in, t.req, nil, func(shares []*edge.Share) {
		known, refusal := edge.AddUp(shares, nil, &kept)
		switch {
		case !edge.Answers(everybody, l.group, known || refusal != nil):
		case refusal != nil:
			p.answer(t, refusal)
		default:
			p.answer(t, &kept)
		}
	})
}

// gather asks those of the wanted buckets that this node is primary of.
func (p *process) gather(in bucket.Input, req subjects.Request, wanted edge.BucketSet, done func(*edge.Part)) {
	after, refusal := edge.ReadPageMark(req.After)
	if refusal != nil {
		done(&edge.Part{Refusal: refusal})
		return
	}
	limit, buckets := int(req.Limit), int(p.count)
	req.After = after
	p.scatter(in, req, wanted, func(shares []*edge.Share) { done(edge.NewPart(req.Op, buckets, limit, nil, shares)) })
}

// collect is zone.ask: a request that concerns all buckets, round after round.
func (p *process) collect(t *task) {
	in := t.in
	in.Reply, in.Req = edge.ShareReply, nil
	c := &edge.Collect{Limit: int(t.req.Limit)}
	until := p.m.clock() + collectTime
	p.collectRound(t, &in, c, until)
}

func (p *process) collectRound(t *task, in *bucket.Input, c *edge.Collect, until int64) {
	c.Begin(int(p.count))
	asked := edge.Primaries(p.state.Views, c.Missing(), func(node uint64) bool { return p.gone[node] })
	waiting, over := len(asked), false
	var refusal *subjects.Refusal
	end := func() {
		if over {
			return
		}
		over = true
		switch {
		case refusal != nil:
			p.answer(t, refusal)
		case c.Whole(int(p.count)):
			p.answer(t, p.collected(t, c))
		case p.m.clock() >= until:
			p.answer(t, noPrimary())
		default:
			p.timer(againTime, func() { p.collectRound(t, in, c, until) })
		}
	}
	for _, node := range slices.Sorted(maps.Keys(asked)) {
		wanted := asked[node]
		answered := false
		p.askNode(node, *in, t.req, wanted, func(part *edge.Part) {
			if over || answered {
				return
			}
			answered = true
			if part != nil {
				refusal = cmp.Or(refusal, c.Take(part, wanted))
			}
			if waiting--; waiting == 0 {
				end()
			}
		})
	}
	if waiting == 0 {
		end()
		return
	}
	p.timer(min(askTime, max(until-p.m.clock(), ms)), end)
}

func (p *process) collected(t *task, c *edge.Collect) subjects.Body {
	if t.req.Op != subjects.OpList {
		return &subjects.SessionClosed{Released: c.Released()}
	}
	page := c.Page()
	edge.Fit(page, nil, 1<<20)
	return page
}

// askNode asks a node for some of its buckets: links.ask and links.asked. One that is not there is known at once.
func (p *process) askNode(node uint64, in bucket.Input, req subjects.Request, wanted edge.BucketSet, done func(*edge.Part)) {
	if node == p.number {
		p.gather(in, req, wanted, done)
		return
	}
	m := p.w.byNumber(node)
	if m == nil || !m.p.serving {
		p.timer(100*us, func() { done(nil) })
		return
	}
	p.w.send(p.m, m, "gather", func(q *process) {
		q.gather(in, req, wanted, func(part *edge.Part) {
			p.w.send(q.m, p.m, "part", func(r *process) {
				if r == p {
					done(part)
				}
			})
		})
	})
}

// connectionClosed is Daemon.connectionClosed.
func (p *process) connectionClosed(zone string, conn bucket.Conn) {
	for _, s := range p.shards {
		s.put(func() {
			s.closed.Add(zone, conn, s.now.Boot)
			for _, c := range s.cells {
				s.touch(c).Tell(s.now, &bucket.Input{Kind: bucket.Disconnect, Zone: zone, Conn: conn})
			}
		})
	}
}

// closeAgain is shard.closeAgain.
func (s *shard) closeAgain(number uint32) {
	if s.closed.Empty() {
		return
	}
	s.put(func() {
		c := s.cell(number)
		if c == nil {
			return
		}
		s.touch(c)
		s.closed.Again(s.now.Boot, func(zone string, conn bucket.Conn) {
			c.Tell(s.now, &bucket.Input{Kind: bucket.Disconnect, Zone: zone, Conn: conn})
		})
	})
}

// leased is Daemon.leaseLeft: whether the node may act.
func (p *process) leased() bool { return p.until > p.m.clock() }

// publish carries out a confirmed effect: shard.publish.
func (p *process) publish(e *bucket.Effect) {
	switch e.Kind {
	case bucket.Reply:
		if e.To == edge.ShareReply {
			return
		}
		p.w.reply(p.m, e.Zone, e.To, p.complete(e.Zone, e.Body))
	case bucket.NotifyOwner:
		event, ok := e.Body.(*subjects.SessionEvent)
		if !ok {
			return
		}
		told := *event
		told.Subject = subjects.SessionEventSubject(e.User, e.SessionID)
		if told.Grant != nil {
			told.Grant, _ = p.complete(e.Zone, told.Grant).(*subjects.Grant)
		}
		p.w.tellSession(p.m, e.Zone, &told)
	case bucket.NotifyZone:
		p.w.tellZone(p.m, e)
	}
}

// complete fills in what only the daemon knows.
func (p *process) complete(zone string, body subjects.Body) subjects.Body {
	switch b := body.(type) {
	case *subjects.Grant:
		told := *b
		p.receipts.Complete(zone, p.m.id, p.state.Settings.MaxLease, &told)
		return &told
	case *subjects.Queued:
		told := *b
		told.Node = p.m.id
		return &told
	}
	return body
}
