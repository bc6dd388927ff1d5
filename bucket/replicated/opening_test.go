package replicated

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

// reopened is a pair whose bucket knows the first opening of a session, which has a lock.
func reopened(t *testing.T) (w *world, p, s *host) {
	t.Helper()
	w, p, s = pair(t)
	w.asked["ann"], w.order = &ask{user: "ann", reply: "_INBOX.ann"}, append(w.order, "ann") // a successor answers again
	w.inSession(p, 1, &subjects.Request{Op: subjects.OpAcquire, Name: "n", Take: 1, Number: 1})
	w.settle(10)
	if p.b.Table().Totals().Holds != 1 || !p.b.waiting.empty() {
		t.Fatal(p.b.Table().Describe())
	}
	return w, p, s
}

func opened(incarnation uint64) bucket.Session {
	return bucket.Session{ID: "s", Incarnation: incarnation, Lease: 10 * time.Second, Conn: bucket.Conn{Server: "srv", CID: incarnation}}
}

// inSession has an opening of the session ask a node, and says what it is told at once.
func (w *world) inSession(h *host, incarnation uint64, req *subjects.Request) (told string) {
	in := bucket.Input{Zone: testZone, User: "ann", Reply: "_INBOX.ann", Key: 7, Req: req, Session: opened(incarnation)}
	h.b.Tick(w.clock())
	if turned := h.b.Request(w.clock(), &in, func(e *bucket.Effect) bool {
		told = string(e.Body.AppendJSON(nil))
		return false
	}); turned != Taken {
		w.t.Fatalf("%d", turned)
	}
	return told
}

// knowsOnly fails unless a successor that is made now refuses the opening before the latest one.
func (w *world) knowsOnly(p, s *host, latest uint64) {
	p.b = nil
	w.pass(nodeLease, func(h *host) bool { return h == s })
	if !w.takeover() {
		w.t.Fatalf("nobody takes over\n%s", w.describe())
	}
	w.settle(10)
	told := w.inSession(s, latest-1, &subjects.Request{Op: subjects.OpQuery, Name: "n"})
	if !strings.Contains(told, "superseded") {
		w.t.Fatalf("the opening before the latest one is told %s\n%s", told, s.b.Table().Describe())
	}
}

// A keep-alive's answer waits until the opening in which it was sent is confirmed: otherwise a successor could take another one, which
// is between the two, for the latest, and the end of its connection would end what the answer has made the client trust.
func TestAKeepAliveWaitsForItsOpening(t *testing.T) {
	w, p, s := reopened(t)
	keep := func(incarnation uint64) (answered bool) {
		p.b.Tick(w.clock())
		count, _, known, refusal := p.b.Keep(w.clock(), &bucket.Input{Zone: testZone, User: "ann", Session: opened(incarnation)}, 1)
		if count != 1 || !known || refusal != nil {
			t.Fatal(count, known, refusal)
		}
		p.b.Wait("kept")
		w.round(p)
		return slices.Contains(p.out.Marks, Released{Mark: "kept"})
	}
	if !keep(1) {
		t.Fatal("an opening that is known waits for nothing")
	}
	if keep(3) {
		t.Fatal("it is answered, and nobody else knows of the opening")
	}
	for len(w.net) > 0 {
		w.deliver(0)
	}
	w.round(s)
	for len(w.net) > 0 {
		w.deliver(0)
	}
	w.round(p)
	if !slices.Contains(p.out.Marks, Released{Mark: "kept"}) {
		t.Fatalf("it is not answered\n%s", w.describe())
	}
	w.knowsOnly(p, s, 3)
}

// So does the answer to a request that changes nothing.
func TestAnAnswerWaitsForItsOpening(t *testing.T) {
	w, p, s := reopened(t)
	in := bucket.Input{Zone: testZone, User: "ann", Reply: "_INBOX.q", Key: 8, Session: opened(3)}
	in.Req = &subjects.Request{Op: subjects.OpRenew, Name: "n", Key: 7, Has: subjects.HasKey}
	w.asked["q"] = &ask{user: "ann", reply: in.Reply, req: *in.Req}
	w.order = append(w.order, "q")
	if turned := p.b.Request(w.clock(), &in, nil); turned != Taken {
		t.Fatal(turned)
	}
	w.round(p)
	if told := w.asked["q"].told; told != "" {
		t.Fatalf("it is told %s, and nobody else knows of the opening", told)
	}
	w.settle(10)
	if told := w.asked["q"].told; !strings.Contains(told, `"granted":true`) {
		t.Fatalf("it is told %s", told)
	}
	w.knowsOnly(p, s, 3)
}

// fill has a node asked until it can take no more.
func (w *world) fill(p *host) {
	for i := 0; p.b.Turned() == Taken; i++ {
		id := fmt.Sprint(i)
		w.asked[id], w.order = &ask{user: "u", reply: "_INBOX." + id}, append(w.order, id)
		in := bucket.Input{Zone: testZone, User: "u", Reply: "_INBOX." + id, Key: uint64(100 + i)}
		in.Req = &subjects.Request{Op: subjects.OpAcquire, Name: id, Take: 1, TTL: time.Hour, Has: subjects.HasTTL}
		p.b.Request(w.clock(), &in, nil)
	}
	if turned := p.b.Turned(); turned != Full {
		w.t.Fatalf("%d", turned)
	}
}

// While no change can be made a keep-alive in a new opening is told nothing, and changes nothing replicated; one in a known opening is answered.
func TestAKeepAliveWhoseOpeningCannotBeTold(t *testing.T) {
	w, p, _ := reopened(t)
	w.fill(p)
	before := p.b.Table().AppendSnapshot(nil)
	if _, _, known, refusal := p.b.Keep(w.clock(), &bucket.Input{Zone: testZone, Session: opened(3)}, 1); known || refusal != nil {
		t.Fatal(known, refusal)
	}
	if after := p.b.Table().AppendSnapshot(nil); !bytes.Equal(after, before) || p.b.Err() != nil || p.b.Table().Untold() {
		t.Fatalf("%v\n%s", p.b.Err(), p.b.Table().Describe())
	}
	if count, _, known, _ := p.b.Keep(w.clock(), &bucket.Input{Zone: testZone, Session: opened(1)}, 1); count != 1 || !known {
		t.Fatal(count, known)
	}
}

// A process whose connection was closed comes back within its grace, while no change can be made for longer than that. It keeps its hold
// if it goes on asking, and else the hold ends with the grace that begins with the last time.
func TestWhoComesBackWhileNoChangeCanBeMade(t *testing.T) {
	const grace = 100 * time.Millisecond
	for _, goesOn := range []bool{true, false} {
		w, p, _ := pair(t)
		w.asked["ann"], w.order = &ask{user: "ann", reply: "_INBOX.ann"}, append(w.order, "ann")
		w.inSession(p, 1, &subjects.Request{Op: subjects.OpAcquire, Name: "n", Take: 1, Number: 1, Grace: grace, Has: subjects.HasGrace})
		w.settle(10)
		p.b.Tell(w.clock(), &bucket.Input{Kind: bucket.Disconnect, Zone: testZone, Conn: opened(1).Conn})
		w.fill(p)
		holds := p.b.Table().Totals().Holds
		came := func() (known bool) {
			p.b.Tick(w.clock())
			_, _, known, _ = p.b.Keep(w.clock(), &bucket.Input{Zone: testZone, User: "ann", Session: opened(3)}, 1)
			return known
		}
		for range 5 {
			w.pass(int64(grace)*3/4, func(*host) bool { return true })
			if goesOn && came() {
				t.Fatal("it is answered, and no change can be made")
			}
		}
		w.settle(10)
		if !came() {
			t.Error("its session is not known")
		}
		want := holds
		if !goesOn {
			want--
		}
		if now := p.b.Table().Totals().Holds; now != want {
			t.Errorf("goes on %v: %d holds of %d, expected %d", goesOn, now, holds, want)
		}
	}
}
