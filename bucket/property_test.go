package bucket

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/opencluster/oclocks/subjects"
)

// TestAgainstModel drives the table and the naive model with the same inputs and compares everything that can be seen from
// outside. world checks besides that the replica follows, that tokens rise and that the table does not contradict itself.
func TestAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		compareWithModel(t, func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "choice") }, rapid.IntRange(1, 150).Draw(t, "steps"))
	})
}

// TestAgainstModelAtLength does the same with long sequences, which rapid does not draw.
func TestAgainstModelAtLength(t *testing.T) {
	runs := 40
	if testing.Short() {
		runs = 5
	}
	for seed := range runs {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { compareWithModel(t, randomChooser(uint64(seed)), 600) })
	}
}

// randomChooser makes reproducible choices.
func randomChooser(seed uint64) func(n int) int {
	random := seed*0x9e3779b97f4a7c15 + 1
	return func(n int) int {
		random ^= random << 13
		random ^= random >> 7
		random ^= random << 17
		return int(random >> 33 % uint64(n))
	}
}

// duel is a table and a model that get the same.
type duel struct {
	t     tester
	w     *world
	m     *model
	g     *generator
	lines []string // what happened so far
	done  map[string]int
	asked map[string]bool
}

func compareWithModel(t tester, choose func(n int) int, steps int) {
	limits := Limits{Queue: 4, Requests: 5, Ended: 2, MaxLease: time.Minute}
	w := newWorld(t, Config{Bucket: 1, Buckets: 2, Journaled: true, Limits: limits})
	w.setZone("main", ZoneSettings{LockEvents: true})
	d := &duel{t: t, w: w, m: newModel(limits), g: newGenerator(w, choose), done: map[string]int{}, asked: map[string]bool{}}
	d.m.zone("main").events = true
	d.m.promote(w.now, w.primary.Term(), 0)
	for range steps {
		switch choose(16) {
		case 0:
			d.g.pass()
			d.m.now = w.now
			d.note("time passes to %d", w.now.Boot)
		case 1:
			d.keep(d.g.sessions[choose(len(d.g.sessions))], uint64(choose(100)))
		case 2:
			if choose(6) == 0 {
				d.takeover(choose(2) == 0, time.Duration(choose(2))*20*time.Second)
			}
		default:
			d.step(d.g.input())
		}
		d.ticks()
	}
	d.finish()
}

func (d *duel) note(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *duel) fail(format string, args ...any) {
	d.t.Helper()
	last := d.lines[max(0, len(d.lines)-12):]
	d.t.Fatalf("%s\nafter\n%s\n%s", fmt.Sprintf(format, args...), strings.Join(last, "\n"), d.w.primary.Describe())
}

func (d *duel) step(in *Input) {
	d.t.Helper()
	d.m.out = nil
	if in.Kind == Request {
		d.note("%s %q by %s/%s: %s", in.Req.Op, in.Req.Name, in.User, in.Session.ID, in.Req.AppendJSON(nil))
		d.asked[in.Reply] = true
		d.m.request(in)
	} else {
		d.note("input %d %+v", in.Kind, in.Conn)
		if in.Kind == Disconnect {
			d.m.disconnect(in)
		} else {
			d.m.stop(in)
		}
	}
	effects, _ := d.w.step(in)
	d.compare(effects)
}

// ticks carries out what is due, and checks that nothing was left.
func (d *duel) ticks() {
	d.t.Helper()
	for n := 0; d.w.primary.Next() <= d.w.now.Boot; n++ {
		if n > 1000 {
			d.fail("a timer is always due")
		}
		effects, ops := d.w.step(&Input{Kind: Tick})
		d.m.out = nil
		if err := d.m.tick(ops); err != nil {
			d.fail("%v\n%s", err, drawOps(ops))
		}
		if len(ops) > 0 {
			d.note("tick\n%s", drawOps(ops))
		}
		d.compare(effects)
	}
	if err := d.m.overdue(); err != nil {
		d.fail("%v", err)
	}
}

func (d *duel) keep(s Session, beat uint64) {
	d.t.Helper()
	count, hash, known, refusal := d.w.primary.Keep(d.w.now, "main", s, beat)
	code := 0
	if refusal != nil {
		code = refusal.Code
	}
	d.note("keep %s %d beat %d", s.ID, s.Incarnation, beat)
	wantCount, wantHash, wantKnown, wantCode := d.m.keep("main", s, beat)
	if count != wantCount || hash != wantHash || known != wantKnown || code != wantCode {
		d.fail("keep says %d %x %v %d, the model %d %x %v %d",
			count, hash, known, code, wantCount, wantHash, wantKnown, wantCode)
	}
}

func (d *duel) takeover(restored bool, recoverFor time.Duration) {
	d.t.Helper()
	d.note("takeover %v %v", restored, recoverFor)
	d.w.takeover(restored, recoverFor)
	until := int64(0)
	if recoverFor > 0 {
		until = d.w.now.Boot + int64(recoverFor)
	}
	d.m.promote(d.w.now, d.w.primary.Term(), until)
}

// compare compares the effects, and counts answers.
func (d *duel) compare(effects []Effect) {
	d.t.Helper()
	d.g.saw(effects)
	for _, e := range effects {
		if e.Kind == Reply {
			d.done[e.To]++
			if !d.asked[e.To] {
				d.fail("%s did not ask", e.To)
			}
			if d.done[e.To] > 1 {
				d.fail("%s is answered twice", e.To)
			}
		}
	}
	for i := range max(len(effects), len(d.m.out)) {
		got, want := "nothing", "nothing"
		if i < len(effects) {
			got = normal(effects[i])
		}
		if i < len(d.m.out) {
			want = normal(d.m.out[i])
		}
		if got != want {
			d.fail("effect %d of the table:\n%s\nof the model:\n%s", i, got, want)
		}
	}
}

// normal is an effect as text, without messages for people.
func normal(e Effect) string {
	return fmt.Sprintf("kind %d zone %s to %s user %s session %s: %s", e.Kind, e.Zone, e.To, e.User, e.SessionID, normalBody(e.Body))
}

func normalBody(body subjects.Body) string {
	switch b := body.(type) {
	case *subjects.Refusal:
		r := *b
		r.Message = ""
		return fmt.Sprintf("%+v", r)
	case *subjects.Grant:
		return fmt.Sprintf("%+v", *b)
	case *subjects.SessionEvent:
		e := *b
		text := ""
		if e.Grant != nil {
			text += normalBody(e.Grant)
		}
		if e.Refusal != nil {
			text += normalBody(e.Refusal)
		}
		e.Grant, e.Refusal = nil, nil
		return fmt.Sprintf("%+v %s", e, text)
	case *subjects.LockEvent:
		return fmt.Sprintf("%+v", *b)
	}
	return fmt.Sprintf("%T %s", body, body.AppendJSON(nil))
}

// finish lets everybody go, and checks that each request was answered once, unless it was asked again elsewhere while it
// waited, and that nobody is left.
func (d *duel) finish() {
	d.t.Helper()
	w := d.w
	w.now.Boot += int64(48 * time.Hour)
	w.now.Wall += (48 * time.Hour).Milliseconds()
	d.m.now = w.now
	d.ticks()
	if usage := w.primary.Totals(); usage.Waiters > 0 || usage.Sessions > 0 {
		d.fail("after two days there is still %+v", usage)
	}
	unanswered := 0
	for reply := range d.asked {
		if d.done[reply] == 0 {
			unanswered++
		}
	}
	if unanswered != d.m.moved {
		d.fail("%d requests were never answered, %d were asked again elsewhere", unanswered, d.m.moved)
	}
	w.restore()
}
