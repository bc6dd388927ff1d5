package bucket

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// one feeds a table with one request and gives its answer.
func one(t *testing.T, table *Table, in *Input) subjects.Body {
	t.Helper()
	var out Output
	table.Step(Now{Boot: int64(time.Hour), Wall: 1}, in, &out)
	if len(out.Effects) != 1 || out.Effects[0].Kind != Reply || out.Effects[0].To != in.Reply {
		t.Fatalf("not one answer but %s", drawEffects(out.Effects))
	}
	return out.Effects[0].Body
}

func acquireOf(name string, key uint64) *Input {
	return &Input{
		Zone: "main", User: "ann", Reply: "r", Key: key, Req: &subjects.Request{Op: subjects.OpAcquire, Name: name, Take: 1},
	}
}

func promoted(t *testing.T, cfg Config, term Term) *Table {
	t.Helper()
	table := New(cfg)
	var out Output
	if err := table.Promote(Now{Boot: int64(time.Hour)}, term, 0, &out); err != nil {
		t.Fatal(err)
	}
	return table
}

// A table that is not primary answers every request with 503, and does nothing by itself.
func TestReplicaRefuses(t *testing.T) {
	table := New(Config{})
	if table.Primary() || table.Next() != math.MaxInt64 {
		t.Error("a new table is primary")
	}
	r, ok := one(t, table, acquireOf("a", 1)).(*subjects.Refusal)
	if !ok || r.Code != 503 || r.Reason != subjects.ReasonUnavailable {
		t.Errorf("answer %v", r)
	}
	var out Output
	for _, kind := range []InputKind{Tick, Stop, Disconnect} {
		table.Step(Now{}, &Input{Kind: kind, Conn: Conn{"srv", 1}}, &out)
	}
	if len(out.Effects)+len(out.Change) != 0 || table.Seq() != 0 {
		t.Error("it did something")
	}
	if _, _, known, _ := table.Keep(Now{}, "main", Session{ID: "s", Incarnation: 1}, 1); known {
		t.Error("it keeps a session")
	}
}

// A term must rise, and what it is may not be more than fits into a token.
func TestPromoteNeedsAHigherTerm(t *testing.T) {
	table := promoted(t, Config{}, Term{Epoch: 4, Term: 7, Counter: 100})
	if got := table.Term(); got != (Term{4, 7, 100}) {
		t.Errorf("term %+v", got)
	}
	var out Output
	for _, term := range []Term{{5, 7, 0}, {5, 6, 0}, {5, 1 << 24, 0}, {5, 8, 1 << 29}} {
		if err := table.Promote(Now{}, term, 0, &out); !errors.Is(err, ErrTerm) {
			t.Errorf("term %+v: %v", term, err)
		}
	}
	if g := one(t, table, acquireOf("a", 1)).(*subjects.Grant); g.Token != 7<<29|101 || g.Epoch != 4 {
		t.Errorf("token %s epoch %d", drawToken(g.Token), g.Epoch)
	}
}

// A full counter raises the term; when the terms are used up too, nothing is granted rather than a token given twice.
func TestTokensRunOut(t *testing.T) {
	w := newWorld(t, Config{})
	w.term = maxTerm - 2
	w.promote(0)
	z := "main"
	last := uint64(0)
	for i := range 3 {
		for _, table := range []*Table{w.primary, w.replica} {
			if zone := table.zoneOf(z); zone != nil {
				zone.token |= maxCounter
			}
		}
		in := acquireOf(fmt.Sprint(i), uint64(i)+1)
		effects, _ := w.step(in)
		switch body := effects[0].Body.(type) {
		case *subjects.Grant:
			if i == 2 || body.Token <= last || body.Token > subjects.MaxToken {
				t.Fatalf("token %s after %s", drawToken(body.Token), drawToken(last))
			}
			last = body.Token
		case *subjects.Refusal:
			if i != 2 || body.Code != 503 {
				t.Fatalf("%d: %v", i, body)
			}
		}
	}
	if effects, _ := w.step(releaseOf("0", 1)); len(effects) != 1 {
		t.Error("what is held cannot be released any more")
	}
}

func releaseOf(name string, key uint64) *Input {
	in := acquireOf(name, 0)
	in.Req.Op, in.Req.Key, in.Req.Has = subjects.OpRelease, key, subjects.HasKey
	return in
}

// Apply wants the next change and no other, of a replica and not of a primary, and a table that has failed stays so.
func TestApplyRefuses(t *testing.T) {
	var first, second, out Output
	source := New(Config{})
	if err := source.Promote(Now{}, Term{Term: 1}, 0, &first); err != nil {
		t.Fatal(err)
	}
	source.Step(Now{}, acquireOf("a", 1), &second)
	if err := source.Apply(second.Change, &out); !errors.Is(err, ErrPrimary) {
		t.Errorf("a primary: %v", err)
	}
	table := New(Config{})
	for _, change := range [][]byte{nil, {0x80}, second.Change} {
		if err := table.Apply(change, &out); !errors.Is(err, ErrChange) || table.Err() != nil {
			t.Errorf("change %x: %v, %v", change, err, table.Err())
		}
	}
	if err := table.Apply(first.Change, &out); err != nil {
		t.Fatal(err)
	}
	if err := table.Apply(second.Change[:len(second.Change)-1], &out); !errors.Is(err, ErrChange) {
		t.Errorf("half a change: %v", err)
	}
	if err := table.Apply(second.Change, &out); !errors.Is(err, ErrChange) {
		t.Errorf("after half a change: %v", err)
	}
	if err := table.Promote(Now{}, Term{Term: 9}, 0, &out); err == nil {
		t.Error("a table that has failed was promoted")
	}
	if err := source.Restore(nil); !errors.Is(err, ErrSnapshot) {
		t.Errorf("restore of a table that is not new: %v", err)
	}
	if err := New(Config{}).Restore(nil); !errors.Is(err, ErrSnapshot) {
		t.Errorf("restore of nothing: %v", err)
	}
}

// A table that contradicts itself, which would be a defect of the package, lets nothing of the step be seen and answers
// 503 from then on.
func TestBrokenTable(t *testing.T) {
	table := promoted(t, Config{}, Term{Term: 1})
	one(t, table, acquireOf("a", 1))
	var out Output
	waits := acquireOf("a", 2)
	waits.Req.Wait = time.Minute
	table.Step(Now{Boot: int64(time.Hour)}, waits, &out)
	clear(table.zoneOf("main").tickets)
	seq := table.Seq()
	for range 2 {
		// The release itself could be carried out, and the grant that follows could not.
		r, ok := one(t, table, releaseOf("a", 1)).(*subjects.Refusal)
		if !ok || r.Code != 503 {
			t.Fatalf("answer %v", r)
		}
		if !errors.Is(table.Err(), ErrBroken) || table.Seq() != seq || table.Next() != math.MaxInt64 {
			t.Fatalf("error %v, change %d after %d", table.Err(), table.Seq(), seq)
		}
	}
}

// What a defective edge sends is refused: what could not be read back from a change is not written into one.
func TestMalformedInputs(t *testing.T) {
	table := promoted(t, Config{}, Term{Term: 1})
	long := strings.Repeat("x", 5000)
	for name, spoil := range map[string]func(in *Input){
		"no request":     func(in *Input) { in.Req = nil },
		"zone":           func(in *Input) { in.Zone = long },
		"user":           func(in *Input) { in.User = long },
		"reply":          func(in *Input) { in.Reply = long },
		"session":        func(in *Input) { in.Session = Session{ID: long, Incarnation: 1} },
		"incarnation":    func(in *Input) { in.Session = Session{ID: "s"} },
		"server":         func(in *Input) { in.Session = Session{ID: "s", Incarnation: 1, Conn: Conn{Server: long}} },
		"no key":         func(in *Input) { in.Key = 0 },
		"no name":        func(in *Input) { in.Req.Name = "" },
		"name":           func(in *Input) { in.Req.Name = long },
		"mode":           func(in *Input) { in.Req.Mode = 9 },
		"kind":           func(in *Input) { in.Req.Kind = 9 },
		"drain":          func(in *Input) { in.Req.Drain = 9 },
		"negative wait":  func(in *Input) { in.Req.Wait = -1 },
		"negative ttl":   func(in *Input) { in.Req.TTL, in.Req.Has = -1, subjects.HasTTL },
		"ttl":            func(in *Input) { in.Req.TTL, in.Req.Has = subjects.MaxTTL+1, subjects.HasTTL },
		"holder":         func(in *Input) { in.Req.Holder = long },
		"data":           func(in *Input) { in.Req.Data, in.Req.Has = make([]byte, subjects.MaxData+1), subjects.HasData },
		"request":        func(in *Input) { in.Req.RequestID = long },
		"operation":      func(in *Input) { in.Req.Op = 99 },
		"key of release": func(in *Input) { in.Req.Op = subjects.OpRelease },
		"outcome": func(in *Input) {
			in.Req.Op, in.Req.Key, in.Req.Outcome = subjects.OpRelease, 1, long
		},
		"reason": func(in *Input) { in.Req.Op, in.Req.Token, in.Req.Reason = subjects.OpForce, 1, long },
		"cancel": func(in *Input) { in.Req.Op, in.Req.RequestID = subjects.OpCancel, long },
		"renew": func(in *Input) {
			in.Req.Op, in.Req.Key, in.Req.Data = subjects.OpRenew, 1, make([]byte, subjects.MaxData+1)
		},
	} {
		in := acquireOf("a", 1)
		spoil(in)
		r, ok := one(t, table, in).(*subjects.Refusal)
		if !ok || r.Code != 400 && r.Code != 413 {
			t.Errorf("%s: %v", name, r)
		}
	}
	if table.Seq() != 1 || table.Totals() != (Usage{}) {
		t.Errorf("something has changed: %s", table.Describe())
	}
}

// A crowd of holders is found by key and by token without a search, in whatever order it goes.
func TestCrowd(t *testing.T) {
	w := newWorld(t, Config{})
	const n = 3 * crowd
	tokens := map[uint64]uint64{}
	for key := uint64(1); key <= n; key++ {
		in := acquireOf("a", key)
		in.Req.Mode, in.Req.Slots = subjects.Semaphore, n
		effects, _ := w.step(in)
		tokens[key] = effects[0].Body.(*subjects.Grant).Token
	}
	random := randomChooser(3)
	for len(tokens) > 0 {
		key := uint64(random(n)) + 1
		check := acquireOf("a", 0)
		check.Req.Op, check.Req.Token = subjects.OpCheck, tokens[key]
		effects, _ := w.step(check)
		if current := effects[0].Body.(*subjects.Checked).Current; current != (tokens[key] != 0) {
			t.Fatalf("token %s is current: %v", drawToken(tokens[key]), current)
		}
		effects, _ = w.step(releaseOf("a", key))
		if _, released := effects[0].Body.(*subjects.Released); released != (tokens[key] != 0) {
			t.Fatalf("key %d: %s", key, drawEffects(effects))
		}
		delete(tokens, key)
	}
}

// The oldest outcomes of a session go when there are too many, and numbers below are refused, not executed again.
func TestOutcomesAreBounded(t *testing.T) {
	table := promoted(t, Config{}, Term{Term: 1})
	session := Session{ID: "s", Incarnation: 1, Lease: 10 * time.Second}
	ask := func(number uint64) subjects.Body {
		in := releaseOf("a", 77)
		in.Session, in.Req.Number = session, number
		return one(t, table, in)
	}
	for number := uint64(1); number <= maxOutcomes+10; number++ {
		if r := ask(number).(*subjects.Refusal); r.Code != 404 {
			t.Fatal(r)
		}
	}
	if table.entries.live != maxOutcomes {
		t.Errorf("%d outcomes are remembered", table.entries.live)
	}
	if r := ask(10).(*subjects.Refusal); r.Code != 400 {
		t.Errorf("an old number: %v", r)
	}
	if r := ask(11).(*subjects.Refusal); r.Code != 404 {
		t.Errorf("the oldest number that is remembered: %v", r)
	}
	if err := verify(table); err != nil {
		t.Error(err)
	}
}

// A list looks at a bounded number of names, tells a bounded number of bytes, and goes on where it ended.
func TestListPages(t *testing.T) {
	table := promoted(t, Config{}, Term{Term: 1})
	const n = 2*scanMax + 100
	for i := range n {
		in := acquireOf(fmt.Sprintf("%05d", i), uint64(i)+1)
		in.Req.Holder = strings.Repeat("x", i%subjects.MaxHolder)
		one(t, table, in)
	}
	list := func(req subjects.Request) (total, pages int) {
		req.Op = subjects.OpList
		last := ""
		for done := false; !done; pages++ {
			var recs []subjects.Record
			var next string
			recs, next, done = table.List("main", &req, Now{Wall: 1})
			bytes := 0
			for _, rec := range recs {
				if rec.Name <= last || !done && rec.Name > next {
					t.Fatalf("%q after %q, next %q", rec.Name, last, next)
				}
				last = rec.Name
				bytes += len(rec.AppendJSON(nil))
			}
			if !done && next <= req.After || len(recs) > int(req.Limit) || bytes > 2*pageMaxBytes {
				t.Fatalf("%d records, %d bytes, next %q after %q", len(recs), bytes, next, req.After)
			}
			total += len(recs)
			req.After = next
		}
		return total, pages
	}
	if total, pages := list(subjects.Request{Limit: 1000}); total != n || pages < n/1000 {
		t.Errorf("%d of %d on %d pages", total, n, pages)
	}
	if total, pages := list(subjects.Request{Limit: 1000, State: subjects.Waited}); total != 0 || pages != 3 {
		t.Errorf("%d on %d pages: a filter that nothing passes reads %d names a page", total, pages, scanMax)
	}
	if total, pages := list(subjects.Request{Limit: 1000, Prefix: "0001"}); total != 10 || pages != 1 {
		t.Errorf("%d of 10 with a prefix on %d pages", total, pages)
	}
}

// A query of a lock with many holders and waiters tells of some and counts the rest.
func TestQueryIsBounded(t *testing.T) {
	table := promoted(t, Config{}, Term{Term: 1})
	data := []byte(`"` + strings.Repeat("x", subjects.MaxData-2) + `"`)
	for i := range 2 * recordHolders {
		in := acquireOf("a", uint64(i)+1)
		in.Req.Mode = subjects.Shared
		in.Req.Data, in.Req.Has = data, subjects.HasData
		one(t, table, in)
	}
	in := acquireOf("a", 0)
	in.Req.Op = subjects.OpQuery
	rec := one(t, table, in).(*subjects.Record)
	if got := len(rec.Holders); got == 0 || got > 2*recordBytes/len(data) || rec.More != 2*recordHolders-got {
		t.Errorf("%d holders and %d more", got, rec.More)
	}
	if n := len(rec.AppendJSON(nil)); n > 2*recordBytes {
		t.Errorf("%d bytes", n)
	}
}

// The hot path allocates what leaves the table, what it must remember, and nothing else that grows.
func TestPairAllocations(t *testing.T) {
	for _, of := range []struct {
		who  string
		in   Session
		want float64
	}{
		{"nobody", Session{}, 2},        // the two answers
		{"session", benchSession(1), 4}, // and the two outcomes that are remembered
	} {
		l := newLoad(t)
		l.hold(1000)
		l.in.Session = of.in
		i := uint64(0)
		pair := func() {
			i++
			l.in.Key = i
			r := subjects.Request{Op: subjects.OpAcquire, Name: fresh[i%1000], Take: 1}
			if of.in.ID != "" {
				r.Number, r.Done = 2*i, 2*i
			}
			l.request(r)
			r.Op, r.Key, r.Has = subjects.OpRelease, i, subjects.HasKey
			if of.in.ID != "" {
				r.Number, r.Done = 2*i+1, 2*i+1
			}
			l.request(r)
		}
		for range 3 * ringSize {
			pair()
		}
		if n := testing.AllocsPerRun(1000, pair); n > of.want {
			t.Errorf("%s: %v allocations for an acquire and a release, want %v", of.who, n, of.want)
		}
	}
}
