package bucket

import (
	"fmt"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// generator makes inputs out of choices: of few names, users and sessions, so that they meet.
type generator struct {
	choose   func(n int) int // 0..n-1
	world    *world
	key      uint64
	requests int
	numbers  uint64
	sessions [4]Session
	conns    uint64
	grants   []subjects.Grant // the latest
}

// Two of them are alike for longer than what is kept in a lock's record.
var genNames = [...]string{"a", "orders/2026/november/22/4711", "orders/2026/november/22/4712", "\xff"}

func newGenerator(w *world, choose func(n int) int) *generator {
	g := &generator{choose: choose, world: w}
	for i := range g.sessions {
		g.sessions[i] = Session{ID: fmt.Sprintf("session-%d", i), Incarnation: 1, Lease: 10 * time.Second}
		g.sessions[i].Conn = g.conn()
	}
	return g
}

func (g *generator) conn() Conn {
	if g.choose(4) == 0 {
		return Conn{CID: g.conns} // not named
	}
	g.conns++
	return Conn{Server: "srv", CID: g.conns/2 + 1} // two sessions share one
}

func (g *generator) user(session int) string { return [...]string{"ann", "ann", "bob", "cy"}[session] }

func (g *generator) maybe(n int) bool { return g.choose(n) == 0 }

// zone of a session: a session belongs to one zone.
func (g *generator) zone() string { return [...]string{"main", "main", "other"}[g.choose(3)] }

// input makes a request or one of the broker's inputs.
func (g *generator) input() *Input {
	switch g.choose(24) {
	case 0:
		return &Input{Kind: Disconnect, Zone: g.zone(), Conn: Conn{Server: "srv", CID: uint64(g.choose(4)) + 1}}
	case 1:
		// The session comes back.
		s := &g.sessions[g.choose(len(g.sessions))]
		if !g.maybe(4) { // else another process does, at another node, and is given the same number
			s.Incarnation++
		}
		s.Conn = g.conn()
	case 2:
		if g.maybe(4) {
			return &Input{Kind: Stop, KeepSessions: g.maybe(2)}
		}
	}
	g.requests++
	in := &Input{Zone: g.zone(), User: [...]string{"ann", "bob", "cy"}[g.choose(3)], Reply: fmt.Sprintf("r%d", g.requests)}
	in.Req = &subjects.Request{Name: genNames[g.choose(len(genNames))], Take: 1}
	if g.maybe(2) {
		i := g.choose(len(g.sessions))
		in.Session, in.User, in.Zone = g.sessions[i], g.user(i), "main"
		if g.maybe(8) {
			in.Session.Incarnation = max(1, in.Session.Incarnation-1)
		} else if g.maybe(8) && in.Session.Conn.CID > 0 { // the earlier one of two with that number
			in.Session.Conn.CID--
		}
	}
	g.request(in)
	g.id(in)
	if g.maybe(20) {
		in.HoldsFull, in.WaitersFull, in.SessionsFull = g.maybe(2), g.maybe(2), g.maybe(2)
	}
	return in
}

// id gives a request an idempotency id, often one that was there before.
func (g *generator) id(in *Input) {
	r := in.Req
	switch {
	case in.Session.ID == "":
		if g.maybe(3) || r.Op == subjects.OpCancel {
			r.RequestID = fmt.Sprintf("id%d", g.choose(6))
		}
	case g.maybe(3):
		r.Number = uint64(max(0, int(g.numbers)-g.choose(4))) + 1
	default:
		g.numbers++
		r.Number = g.numbers
	}
	if in.Session.ID != "" && g.maybe(3) {
		r.Done = uint64(max(0, int(g.numbers)-g.choose(6)))
	}
}

func (g *generator) request(in *Input) {
	r := in.Req
	switch n := g.choose(20); {
	case n < 10:
		g.acquire(in)
	case n < 14:
		r.Op = subjects.OpRelease
		g.held(in)
	case n < 16:
		r.Op, r.Trusted = subjects.OpRenew, g.maybe(2)
		g.held(in)
		if g.maybe(2) {
			r.TTL, r.Has = time.Duration(g.choose(4))*7*time.Second, r.Has|subjects.HasTTL
		}
		if g.maybe(3) {
			r.Data, r.Has = []byte(fmt.Sprint(g.choose(3))), r.Has|subjects.HasData
		}
	case n < 17:
		r.Op = subjects.OpCancel
		if g.maybe(2) {
			g.held(in)
			r.Key, r.Has = 0, subjects.HasToken
		}
	case n < 18:
		r.Op = subjects.OpForce
		g.held(in)
		r.Now = g.maybe(3)
	case n < 19:
		r.Op = [...]subjects.Op{subjects.OpQuery, subjects.OpCheck, subjects.OpReclaim}[g.choose(3)]
		g.held(in)
	default:
		r.Op = subjects.OpSessionClose
	}
}

// held points a request at a grant, mostly.
func (g *generator) held(in *Input) {
	r := in.Req
	r.Key, r.Token = uint64(g.choose(100))+1, uint64(g.choose(100))+1
	if len(g.grants) > 0 && !g.maybe(8) {
		grant := g.grants[g.choose(len(g.grants))]
		r.Name, r.Key, r.Token = grant.Name, grant.Key, grant.Token
		if in.Session.ID == "" {
			in.Zone = grant.Node // remembered there, see saw
		}
	}
	r.Has |= subjects.HasKey | subjects.HasToken
}

func (g *generator) acquire(in *Input) {
	r := in.Req
	r.Op = subjects.OpAcquire
	g.key++
	in.Key = g.key
	r.Mode = subjects.Mode([...]int{0, 0, 1, 2}[g.choose(4)])
	if r.Mode == subjects.Semaphore {
		r.Slots = 3
		r.Take = uint32(g.choose(3)) + 1
		if g.maybe(10) {
			r.Slots = 4
		}
	}
	if r.Mode == subjects.Exclusive {
		r.Drain = subjects.Drain(g.choose(3))
		if r.Drain == subjects.Timed {
			r.Quiet = time.Duration(g.choose(3)+1) * time.Second
		}
	}
	if in.Session.ID != "" || g.maybe(30) {
		r.Kind = subjects.Kind(g.choose(3))
		r.Enqueue = g.maybe(4)
		r.Recall = g.maybe(4)
		if g.maybe(3) && r.Kind != subjects.Static {
			r.Grace, r.Has = time.Duration(g.choose(3))*2*time.Second, r.Has|subjects.HasGrace
		}
	}
	if g.maybe(3) {
		r.TTL, r.Has = time.Duration(g.choose(4))*5*time.Second, r.Has|subjects.HasTTL
	}
	if !g.maybe(3) {
		r.Wait = [...]time.Duration{0, 50 * time.Millisecond, 11 * time.Second, 33 * time.Second}[g.choose(4)]
		r.Has |= subjects.HasWait
	}
	if g.maybe(5) {
		r.Holder = "somebody"
	}
}

// saw remembers grants, so that later requests can be about them.
func (g *generator) saw(effects []Effect) {
	for _, e := range effects {
		grant, ok := e.Body.(*subjects.Grant)
		if ev, is := e.Body.(*subjects.SessionEvent); is && ev.Grant != nil {
			grant, ok = ev.Grant, true
		}
		if ok {
			kept := *grant
			kept.Node = e.Zone
			g.grants = append(g.grants, kept)
			if len(g.grants) > 6 {
				g.grants = g.grants[1:]
			}
		}
	}
}

// pass lets time pass: by a little, or until just about when something is due.
func (g *generator) pass() {
	w := g.world
	d := int64(g.choose(1000)) * 7_001_003
	if next := w.primary.Next(); g.maybe(2) && next != never {
		d = max(0, next-w.now.Boot) + int64(g.choose(3)-1)*1_000_003
	}
	w.now.Boot += max(d, 0)
	w.now.Wall += max(d, 0) / int64(time.Millisecond)
}
