package bucket

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/datadriven"

	"github.com/opencluster/oclocks/subjects"
)

// TestGolden plays the scripts below testdata/golden. Every line of a script is shown with the ops of its change, indented,
// and the effects. `go test -run Golden -rewrite` writes what comes out into the scripts, to be read before it is kept.
//
// Lines:
//
//	session HANDLE [id=] [user=] [lease=] [conn=] [inc=]   what a request with s=HANDLE has as its session; no step
//	OP NAME [user=] [s=HANDLE] [r=REQUEST] [done=] [reply=] [k=KEY] [full=holds,waiters,sessions] and fields of the protocol
//	keep HANDLE BEAT · disconnect CONN · stop [keep] · tick DURATION · list [prefix=] [after=] [limit=] [state=] [older_than=]
//	zone NAME [events] · promote [recover=] · takeover [restored] [recover=] · describe · usage
//
// The n-th acquire of a file gets the unlock key n, and the n-th request answers to r<n>, unless the line says otherwise.
// A token is written term.counter.
func TestGolden(t *testing.T) {
	datadriven.Walk(t, "testdata/golden", func(t *testing.T, path string) {
		g := &golden{t: t, sessions: map[string]Session{}, users: map[string]string{}, zone: "main"}
		g.world = newWorld(t, Config{Bucket: 3, Buckets: 8, Journaled: true})
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			g.t, g.world.t = t, t
			switch d.Cmd {
			case "config":
				g.config(d)
				return ""
			case "run":
				g.out.Reset()
				g.brief = d.HasArg("brief")
				for line := range strings.Lines(d.Input) {
					if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
						fmt.Fprintf(&g.out, "> %s\n", line)
						g.line(line)
					}
				}
				return g.out.String()
			}
			t.Fatalf("%s: no command %s", d.Pos, d.Cmd)
			return ""
		})
	})
}

type golden struct {
	t        *testing.T
	world    *world
	zone     string
	sessions map[string]Session
	users    map[string]string
	acquires int
	requests int
	brief    bool // no ops
	out      strings.Builder
}

func (g *golden) config(d *datadriven.TestData) {
	cfg := Config{Bucket: 3, Buckets: 8, Journaled: !d.HasArg("volatile"), SyncAlways: d.HasArg("sync")}
	d.MaybeScanArgs(g.t, "queue", &cfg.Limits.Queue)
	d.MaybeScanArgs(g.t, "requests", &cfg.Limits.Requests)
	d.MaybeScanArgs(g.t, "ended", &cfg.Limits.Ended)
	g.world = newWorld(g.t, cfg)
}

// args are the words of a line.
type args struct {
	g      *golden
	words  []string
	values map[string]string
}

func (g *golden) parse(line string) args {
	a := args{g: g, values: map[string]string{}}
	for _, word := range strings.Fields(line) {
		if key, value, found := strings.Cut(word, "="); found {
			a.values[key] = value
		} else {
			a.words = append(a.words, word)
		}
	}
	return a
}

func (a args) has(word string) bool {
	for _, w := range a.words[1:] {
		if w == word {
			return true
		}
	}
	return false
}

func (a args) number(key string) uint64 {
	text := a.values[key]
	if term, counter, found := strings.Cut(text, "."); found {
		t, _ := strconv.ParseUint(term, 10, 64)
		c, _ := strconv.ParseUint(counter, 10, 64)
		return t<<counterBits | c
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		a.g.t.Fatalf("%s=%s: %v", key, text, err)
	}
	return n
}

func (a args) span(key string) time.Duration {
	d, err := time.ParseDuration(a.values[key])
	if err != nil {
		a.g.t.Fatalf("%s: %v", key, err)
	}
	return d
}

func (g *golden) line(line string) {
	a := g.parse(line)
	w := g.world
	switch a.words[0] {
	case "session":
		g.session(a)
	case "keep":
		beat, _ := strconv.ParseUint(a.words[2], 10, 64)
		count, hash, known, refusal := w.primary.Keep(w.now, g.zone, g.sessions[a.words[1]], beat)
		fmt.Fprintf(&g.out, "count %d hash %016x known %v", count, hash, known)
		if refusal != nil {
			fmt.Fprintf(&g.out, " refused %s", refusal.AppendJSON(nil))
		}
		g.out.WriteByte('\n')
		g.due()
	case "disconnect":
		cid, _ := strconv.ParseUint(a.words[1], 10, 64)
		g.step(&Input{Kind: Disconnect, Zone: g.zone, Conn: Conn{Server: "srv", CID: cid}})
	case "stop":
		g.step(&Input{Kind: Stop, KeepSessions: a.has("keep")})
	case "tick":
		d, err := time.ParseDuration(a.words[1])
		if err != nil {
			g.t.Fatal(err)
		}
		g.tick(d)
	case "zone":
		g.zone = a.words[1]
		w.setZone(g.zone, ZoneSettings{LockEvents: a.has("events")})
	case "promote", "takeover":
		g.promote(a)
	case "describe":
		g.out.WriteString(w.primary.Describe())
	case "usage":
		fmt.Fprintf(&g.out, "%+v of %+v in %q\n", w.primary.Usage(g.zone), w.primary.Totals(), w.primary.Zones())
	case "list":
		g.list(a)
	default:
		g.request(a)
	}
}

func (g *golden) session(a args) {
	s := Session{ID: a.words[1], Incarnation: 1, Lease: 10 * time.Second}
	user := "ann"
	for key, value := range a.values {
		switch key {
		case "id":
			s.ID = value
		case "user":
			user = value
		case "lease":
			s.Lease = a.span(key)
		case "conn":
			s.Conn = Conn{Server: "srv", CID: a.number(key)}
		case "inc":
			s.Incarnation = a.number(key)
		}
	}
	g.sessions[a.words[1]], g.users[a.words[1]] = s, user
}

func (g *golden) promote(a args) {
	var recover time.Duration
	if a.values["recover"] != "" {
		recover = a.span("recover")
	}
	var ops []op
	if a.words[0] == "promote" {
		ops = g.world.promote(recover)
	} else {
		ops = g.world.takeover(a.has("restored"), recover)
	}
	g.show(g.world.out.Effects, ops)
	g.due()
}

// tick lets time pass, timer by timer, as a broker does.
func (g *golden) tick(d time.Duration) {
	w := g.world
	for end := w.now.Boot + int64(d); ; {
		next := min(max(w.primary.Next(), w.now.Boot), end)
		w.now.Wall += (next - w.now.Boot) / int64(time.Millisecond)
		w.now.Boot = next
		g.due()
		if next == end {
			return
		}
	}
}

// due carries out all timers that are due.
func (g *golden) due() {
	for g.world.primary.Next() <= g.world.now.Boot {
		g.step(&Input{Kind: Tick})
	}
}

func (g *golden) step(in *Input) {
	effects, ops := g.world.step(in)
	g.show(effects, ops)
}

func (g *golden) show(effects []Effect, ops []op) {
	if !g.brief {
		g.out.WriteString(drawOps(ops))
	}
	g.out.WriteString(drawEffects(effects))
}

func (g *golden) list(a args) {
	req := subjects.Request{Op: subjects.OpList, Prefix: a.values["prefix"], After: a.values["after"], Limit: 100}
	if a.values["limit"] != "" {
		req.Limit = uint32(a.number("limit"))
	}
	if a.values["older_than"] != "" {
		req.OlderThan = a.span("older_than")
	}
	switch a.values["state"] {
	case "held":
		req.State = subjects.Held
	case "waited":
		req.State = subjects.Waited
	}
	recs, next, done := g.world.primary.List(g.zone, &req, g.world.now)
	for i := range recs {
		fmt.Fprintf(&g.out, "%s\n", recs[i].AppendJSON(nil))
	}
	fmt.Fprintf(&g.out, "next %q done %v\n", next, done)
}

func (g *golden) request(a args) {
	op, ok := subjects.ParseOp(a.words[0])
	if !ok {
		g.t.Fatalf("no operation %s", a.words[0])
	}
	g.requests++
	req := subjects.Request{Op: op, Take: 1}
	in := &Input{Zone: g.zone, User: "ann", Req: &req, Reply: fmt.Sprintf("r%d", g.requests)}
	if len(a.words) > 1 {
		req.Name = a.words[1]
	}
	if op == subjects.OpAcquire {
		g.acquires++
		in.Key = uint64(g.acquires)
	}
	if handle := a.values["s"]; handle != "" {
		in.Session, in.User = g.sessions[handle], g.users[handle]
		req.Session = in.Session.ID
	}
	for key, value := range a.values {
		g.field(a, in, key, value)
	}
	g.step(in)
}

func (g *golden) field(a args, in *Input, key, value string) {
	req := in.Req
	switch key {
	case "s":
	case "user":
		in.User = value
	case "reply":
		in.Reply = value
	case "k":
		in.Key = a.number(key)
	case "full":
		in.HoldsFull = strings.Contains(value, "holds")
		in.WaitersFull = strings.Contains(value, "waiters")
		in.SessionsFull = strings.Contains(value, "sessions")
	case "r":
		if in.Session.ID != "" || a.values["s"] != "" {
			req.Number = a.number(key)
		} else {
			req.RequestID = value
		}
		req.Has |= subjects.HasRequest
	case "done":
		req.Done = a.number(key)
	case "mode":
		req.Mode = map[string]subjects.Mode{"exclusive": 0, "shared": subjects.Shared, "semaphore": subjects.Semaphore}[value]
	case "kind":
		req.Kind = map[string]subjects.Kind{"static": subjects.Static, "connection": subjects.Connection}[value]
	case "drain":
		req.Drain = map[string]subjects.Drain{"soft": subjects.Soft, "timed": subjects.Timed}[value]
	case "slots":
		req.Slots = uint32(a.number(key))
	case "take":
		req.Take = uint32(a.number(key))
	case "enqueue":
		req.Enqueue = true
	case "recall":
		req.Recall = true
	case "now":
		req.Now = true
	case "trusted":
		req.Trusted = true
	case "ttl":
		req.TTL = a.span(key)
		req.Has |= subjects.HasTTL
	case "grace":
		req.Grace = a.span(key)
		req.Has |= subjects.HasGrace
	case "wait":
		req.Wait = a.span(key)
		req.Has |= subjects.HasWait
	case "quiet":
		req.Quiet = a.span(key)
	case "key":
		req.Key = a.number(key)
		req.Has |= subjects.HasKey
	case "token":
		req.Token = a.number(key)
		req.Has |= subjects.HasToken
	case "holder":
		req.Holder = value
	case "outcome":
		req.Outcome = value
	case "reason":
		req.Reason = value
	case "data":
		req.Data = []byte(value)
		req.Has |= subjects.HasData
	default:
		g.t.Fatalf("no field %s", key)
	}
}
