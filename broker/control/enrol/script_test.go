package enrol

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/broker/control/flow"
	"github.com/opencluster/oclocks/broker/control/reign"
	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/internal/transcript"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The files in testdata/golden are scripts. Times are milliseconds. This node is "me", its control store has raft ID 1, its disk
// knows start 10 of change 5; the process has start 20.
func TestScripts(t *testing.T) {
	transcript.Play(t, func(t *testing.T) transcript.World {
		w := &world{state: &shared.State{}}
		return func(t *testing.T, out *strings.Builder, words []string) {
			w.t, w.out = t, out
			w.do(words)
		}
	})
}

type world struct {
	t     *testing.T
	out   *strings.Builder
	a     *Asking
	e     *Enrolment
	state *shared.State
	lead  uint64
}

const ms = 1_000_000

func (w *world) num(s string) uint64 {
	w.t.Helper()
	return transcript.Uint(w.t, s)
}

func (w *world) now(s string) int64 { return int64(w.num(s)) * ms }

func (w *world) do(f []string) {
	disk := flow.Starts{Known: 10, Change: 5}
	switch f[0] {
	case "asking": // asking [empty]
		w.a = NewAsking(disk, 1, len(f) > 1)
	case "ask": // ask NOW [alone | RAFT/START/CHANGE[+leading][+elects][+lease] …]
		alone := len(f) > 2 && f[2] == "alone"
		var answers []Start
		if !alone {
			for _, s := range f[2:] {
				answers = append(answers, w.start(s))
			}
		}
		out := w.a.Step(w.now(f[1]), alone, answers...)
		fmt.Fprintf(w.out, "%s: ask=%t done=%t old=%t lease=%s next=%d", f[1], out.Ask, out.Done, out.Old, out.Lease, out.Next/ms)
		if out.Err != nil {
			fmt.Fprintf(w.out, " %.60s…", out.Err)
		}
		fmt.Fprintln(w.out)
	case "enrolment":
		w.e = NewEnrolment("me", 1, 20, disk.Begin(20))
	case "state": // state CHANGE [RAFT START REGISTERED]: as applied here
		w.state = &shared.State{Change: w.num(f[1])}
		if len(f) > 2 {
			w.state.Nodes = []shared.Node{{ID: "me", Number: 3, Life: 2, Raft: w.num(f[2]), Start: w.num(f[3]), Registered: w.num(f[4])}}
		}
	case "leader":
		w.lead = w.num(f[1])
	case "step": // step NOW [silence|wait MS|duplicate|refused KIND [votes]|registered CHANGE]
		w.step(w.now(f[1]), f[2:])
	default:
		w.t.Fatalf("unknown: %v", f)
	}
}

func (w *world) start(s string) Start {
	parts := strings.Split(s, "+")
	f := strings.Split(parts[0], "/")
	a := Start{Raft: w.num(f[0]), Start: w.num(f[1]), Change: w.num(f[2])}
	a.Leading, a.Elects = slices.Contains(parts, "leading"), slices.Contains(parts, "elects")
	if slices.Contains(parts, "lease") {
		a.Lease = time.Second
	}
	return a
}

func (w *world) step(now int64, f []string) {
	var a *reign.Answer
	if len(f) > 0 {
		a = &reign.Answer{}
		switch f[0] {
		case "silence":
			*a = Silence
		case "wait":
			a.WaitMS = int64(w.num(f[1]))
		case "duplicate":
			a.Duplicate = true
		case "refused":
			a.Kind, a.Problem, a.Votes = f[1], "because", len(f) > 2
		case "registered":
			a.Number, a.Life, a.Change = 3, 2, w.num(f[1])
		}
	}
	out := w.e.Step(Facts{Now: now, State: w.state, Leader: w.lead}, a)
	fmt.Fprintf(w.out, "%d: ask=%t next=%d", now/ms, out.Ask, out.Next/ms)
	if out.Become != nil {
		fmt.Fprintf(w.out, " become node %d, life %d, by change %d; the disk knows %+v", out.Become.Number, out.Become.Life, out.Become.Registered, out.Starts)
	}
	if out.Stays {
		fmt.Fprint(w.out, " stays for its vote")
	}
	if out.Fail != nil {
		fmt.Fprintf(w.out, " fail, old disk %t: %v", out.OldDisk, out.Fail)
	}
	fmt.Fprintln(w.out)
}

// TestWhoCanElect: a majority of the voters must be left without the one that asks.
func TestWhoCanElect(t *testing.T) {
	for _, c := range []struct {
		voters []uint64
		want   bool
	}{
		{nil, false}, {[]uint64{1}, false}, {[]uint64{2}, true}, {[]uint64{1, 2}, false}, {[]uint64{2, 3}, true}, {[]uint64{1, 2, 3}, true},
	} {
		a := LastStart(Question{Identifier: "me", Raft: 1}, &shared.State{}, &core.Status{Voters: c.voters})
		if a.Elects != c.want || a.Start != 0 || a.Lease != 0 {
			t.Errorf("of %v: %+v", c.voters, a)
		}
	}
	state := &shared.State{Cluster: "c", Settings: shared.DefaultSettings(), Nodes: []shared.Node{{ID: "me", Raft: 1, Start: 4, Registered: 9}}}
	a := LastStart(Question{Identifier: "me", Raft: 7}, state, &core.Status{Leading: true})
	if want := (Start{Raft: 1, Start: 4, Change: 9, Leading: true, Lease: state.Settings.NodeLease}); a != want {
		t.Errorf("%+v, want %+v", a, want)
	}
}
