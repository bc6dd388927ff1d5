package bucket

import (
	"bytes"
	"fmt"
	"reflect"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// tester is what testing.T and rapid.T have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// world is a primary and a replica that is fed with its changes. After every step it checks that the two have the same
// snapshot and the same effects, and that neither contradicts itself. The two hash names differently: nothing that can be
// seen may depend on it.
type world struct {
	t       tester
	cfg     Config
	primary *Table
	replica *Table
	zones   map[string]ZoneSettings
	now     Now
	out     Output
	term    uint32
	tokens  map[string]uint64 // the last of each zone
}

func newWorld(t tester, cfg Config) *world {
	w := &world{
		t: t, cfg: cfg, primary: New(cfg), zones: map[string]ZoneSettings{}, tokens: map[string]uint64{},
		now: Now{Boot: int64(1000 * time.Second), Wall: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC).UnixMilli()},
	}
	w.replica = New(w.other())
	w.promote(0)
	return w
}

// other is the configuration with another hash, under which many names collide.
func (w *world) other() Config {
	cfg := w.cfg
	cfg.Hash = func(name string) uint64 { return uint64(len(name)) }
	return cfg
}

// promote makes the primary's term begin, as after a start or a takeover.
func (w *world) promote(recoverFor time.Duration) []op {
	w.t.Helper()
	w.term = max(w.term, w.primary.Term().Term) + 1
	until := int64(0)
	if recoverFor > 0 {
		until = w.now.Boot + int64(recoverFor)
	}
	w.out.Effects = nil
	if err := w.primary.Promote(w.now, Term{Epoch: uint64(w.term), Term: w.term}, until, &w.out); err != nil {
		w.t.Fatal(err)
	}
	return w.compare()
}

// step feeds the primary and gives what came out of it.
func (w *world) step(in *Input) (effects []Effect, ops []op) {
	w.t.Helper()
	w.out.Effects = nil
	w.primary.Step(w.now, in, &w.out)
	if err := w.primary.Err(); err != nil {
		w.t.Fatalf("%v\ninput %+v %+v\n%s", err, in, in.Req, w.replica.Describe())
	}
	ops = w.compare()
	return w.out.Effects, ops
}

// compare feeds the replica with the primary's change.
func (w *world) compare() []op {
	w.t.Helper()
	w.checkTokens()
	if err := verify(w.primary); err != nil {
		w.t.Fatal(err)
	}
	if w.out.Seq != w.primary.Seq() {
		w.t.Fatalf("output has number %d, the table %d", w.out.Seq, w.primary.Seq())
	}
	if len(w.out.Change) == 0 {
		return nil
	}
	var out Output
	if err := w.replica.Apply(w.out.Change, &out); err != nil {
		w.t.Fatalf("replica: %v\n%s", err, drawOps(decodeOps(w.t, w.out.Change)))
	}
	if err := verify(w.replica); err != nil {
		w.t.Fatalf("replica: %v", err)
	}
	if !reflect.DeepEqual(out.Effects, w.out.Effects) {
		w.t.Fatalf("effects of the replica:\n%s\nof the primary:\n%s", drawEffects(out.Effects), drawEffects(w.out.Effects))
	}
	if out.Seq != w.out.Seq || out.Zone != w.out.Zone {
		w.t.Fatalf("replica: change %d of zone %q, primary: %d of %q", out.Seq, out.Zone, w.out.Seq, w.out.Zone)
	}
	if a, b := w.primary.AppendSnapshot(nil), w.replica.AppendSnapshot(nil); !bytes.Equal(a, b) {
		w.t.Fatalf("snapshots differ\nprimary: %s\nreplica: %s", w.primary.Describe(), w.replica.Describe())
	}
	return decodeOps(w.t, w.out.Change)
}

// checkTokens checks that every grant's token is higher than all before it in its zone.
func (w *world) checkTokens() {
	w.t.Helper()
	for _, e := range w.out.Effects {
		g, ok := e.Body.(*subjects.Grant)
		if ev, is := e.Body.(*subjects.SessionEvent); is {
			g, ok = ev.Grant, ev.Grant != nil
		}
		if !ok || len(w.out.Change) == 0 || g.Ticket == 0 {
			continue // told again, or renewed
		}
		if g.Token <= w.tokens[e.Zone] || g.Token > subjects.MaxToken {
			w.t.Fatalf("zone %s: token %d after %d", e.Zone, g.Token, w.tokens[e.Zone])
		}
		w.tokens[e.Zone] = g.Token
	}
}

// restore gives a new table the primary's snapshot, and checks that nothing of it is lost.
func (w *world) restore() *Table {
	w.t.Helper()
	snapshot := w.primary.AppendSnapshot(nil)
	t := New(w.other())
	for zone, settings := range w.zones {
		t.SetZone(zone, settings)
	}
	if err := t.Restore(snapshot); err != nil {
		w.t.Fatalf("%v\n%s", err, w.primary.Describe())
	}
	if err := verify(t); err != nil {
		w.t.Fatalf("restored: %v", err)
	}
	if again := t.AppendSnapshot(nil); !bytes.Equal(snapshot, again) {
		w.t.Fatalf("snapshot of a restored table differs\nprimary:  %s\nrestored: %s", w.primary.Describe(), t.Describe())
	}
	return t
}

// takeover lets the primary die and the replica, or a table restored from the primary's snapshot, take its place.
func (w *world) takeover(restored bool, recoverFor time.Duration) []op {
	w.t.Helper()
	heir := w.replica
	if restored {
		heir = w.restore()
	}
	w.replica = w.restore()
	w.primary = heir
	return w.promote(recoverFor)
}

func (w *world) setZone(zone string, settings ZoneSettings) {
	w.zones[zone] = settings
	w.primary.SetZone(zone, settings)
	w.replica.SetZone(zone, settings)
}

// decodeOps reads a change.
func decodeOps(t tester, change []byte) (ops []op) {
	t.Helper()
	c := coder{buf: change, reading: true}
	var seq uint64
	num(&c, &seq, anyUint)
	for len(c.buf) > 0 {
		var o op
		num(&c, &o.code, anyUint8)
		o.fields(&c)
		ops = append(ops, o)
	}
	if c.bad {
		t.Fatalf("malformed change %x", change)
	}
	return ops
}

func drawEffects(effects []Effect) string {
	var b bytes.Buffer
	for _, e := range effects {
		switch e.Kind {
		case Reply:
			fmt.Fprintf(&b, "%s: ", e.To)
		case NotifyOwner:
			fmt.Fprintf(&b, "to %s/%s: ", e.User, e.SessionID)
		case NotifyZone:
			fmt.Fprintf(&b, "to zone %s: ", e.Zone)
		}
		b.Write(e.Body.AppendJSON(nil))
		b.WriteByte('\n')
	}
	return b.String()
}

func drawOps(ops []op) string {
	var b bytes.Buffer
	for i := range ops {
		fmt.Fprintf(&b, "  %s\n", drawOp(&ops[i]))
	}
	return b.String()
}

func drawOp(o *op) string {
	switch o.code {
	case opTerm:
		return fmt.Sprintf("term %d.%d epoch %d", o.term, o.counter, o.epoch)
	case opZone:
		return "zone " + o.zone
	case opName:
		return fmt.Sprintf("name %q", o.name)
	case opSeen:
		return fmt.Sprintf("seen %s of %s, incarnation %d, lease %s", o.session, o.user, o.incarnation, o.span)
	case opDone:
		return fmt.Sprintf("done %s %d", o.session, o.number)
	case opForget:
		return fmt.Sprintf("forget %q %d", o.session, o.number)
	case opCloseSession:
		return fmt.Sprintf("close session %s: %s, released %d", o.session, o.why, o.number)
	case opDropSession:
		return "drop session " + o.session
	case opGrant:
		return "grant " + drawWant(&o.want)
	case opEnqueue:
		return "enqueue " + drawWant(&o.want)
	case opAdmit:
		return fmt.Sprintf("admit %d after %s", o.ticket, o.span)
	case opEnd:
		return fmt.Sprintf("end %s: %s after %s", drawToken(o.token), o.why, o.span)
	case opLeave:
		return fmt.Sprintf("leave %d: %s", o.ticket, o.why)
	case opMove:
		return fmt.Sprintf("move %d to %s, wait %s", o.ticket, o.reply, o.wait)
	case opRenew:
		return fmt.Sprintf("renew %s ttl %v %s data %v %s", drawToken(o.token), o.newTTL, o.ttl, o.newData, o.data)
	case opForce:
		return "force " + drawToken(o.token)
	case opAnswer:
		return fmt.Sprintf("answer %q, remember %q", o.reply, o.request.text())
	case opPlace:
		return fmt.Sprintf("place %d", o.ticket)
	case opForgetEnds:
		return fmt.Sprintf("forget ends %d", o.number)
	case opRecall:
		return "recall " + drawToken(o.token)
	}
	return fmt.Sprintf("op %d", o.code)
}

func drawWant(w *want) string {
	s := w.user
	if w.session != "" {
		s += "/" + w.session
	}
	s += " " + w.mode.String() + " " + w.kind.String()
	if w.slots > 0 {
		s += fmt.Sprintf(" %d of %d", w.take, w.slots)
	}
	if w.ttl > 0 {
		s += " ttl " + w.ttl.String()
	}
	if w.wait > 0 {
		s += " wait " + w.wait.String()
	}
	if w.request.op != subjects.OpNone {
		s += " request " + w.request.text()
	}
	return s
}
