package flow

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
	"go.uber.org/goleak"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/internal/transcript"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestScripts runs the transcripts in testdata/golden. Each file has one script for each type.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/golden", func(t *testing.T, path string) {
		w := &world{t: t, asks: NewAsks(3), feed: NewFeed(3, func(s []chain.View) []chain.View { return s })}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			w.t, w.out = t, &strings.Builder{}
			for line := range strings.SplitSeq(d.Input, "\n") {
				w.do(d, d.Cmd, strings.Fields(line))
			}
			if w.out.Len() == 0 {
				return "ok\n"
			}
			return w.out.String()
		})
	})
}

type world struct {
	t        *testing.T
	out      *strings.Builder
	asks     *Asks
	feed     *Feed[[]chain.View]
	presence Presence
	starts   map[string]Starts // by disk
}

func (w *world) say(format string, args ...any) { fmt.Fprintf(w.out, format+"\n", args...) }

func (w *world) num(s string) uint64 {
	w.t.Helper()
	return transcript.Uint(w.t, s)
}

// view reads a view, or an epoch alone.
func (w *world) view(s string) chain.View {
	w.t.Helper()
	if !strings.Contains(s, ":") {
		return chain.View{Epoch: w.num(s)}
	}
	return transcript.View(w.t, s, 0)
}

func (w *world) do(d *datadriven.TestData, cmd string, args []string) {
	switch cmd {
	case "add": // bucket view
		if !w.asks.Add(Ask{uint32(w.num(args[0])), w.view(args[1])}) {
			w.say("no room")
		}
	case "take":
		views, members := 10, 100
		d.MaybeScanArgs(w.t, "views", &views)
		d.MaybeScanArgs(w.t, "members", &members)
		for _, q := range w.asks.Take(views, members) {
			w.say("bucket %d: %v", q.Bucket, q.View)
		}
	case "done": // bucket taken|refused epoch, ...
		var outcomes []Outcome
		for ; len(args) >= 3; args = args[3:] {
			outcomes = append(outcomes, Outcome{uint32(w.num(args[0])), args[1] == "taken", w.num(args[2])})
		}
		for _, q := range w.asks.Done(outcomes) {
			w.say("refused for bucket %d: %v", q.Bucket, q.View)
		}
	case "unknown":
		w.asks.Unknown()
	case "committed":
		w.asks.Committed(uint32(w.num(args[0])), w.num(args[1]))
	case "count":
		w.say("%d waiting, %d in flight", w.asks.Waiting(), w.asks.InFlight())
	case "push": // change view view ...
		var state []chain.View
		for _, a := range args[1:] {
			state = append(state, w.view(a))
		}
		w.feed.Push(w.num(args[0]), state)
	case "again": // the same views under a later change
		w.feed.Push(w.num(args[0]), w.feed.pending[len(w.feed.pending)-1].State)
	case "open":
		w.feed.Open()
	case "next":
		for {
			views, next, ok := w.feed.Next()
			if !ok {
				return
			}
			for _, q := range views {
				w.say("install bucket %d: %v", q.Bucket, q.View)
			}
			w.say("applied %d", next.Change)
		}
	case "judge": // first now known-start until heard gone?
		var known Life
		if len(args) > 2 {
			known = Life{Claim: Claim{Raft: 7, Start: w.num(args[2])}, Until: int64(w.num(args[3])), Heard: int64(w.num(args[4])), Gone: len(args) > 5}
		}
		switch wait := Judge(Claim{Raft: 7, Start: 2}, known, int64(w.num(args[0])), int64(w.num(args[1]))); wait {
		case 0:
			w.say("may register")
		case math.MaxInt64:
			w.say("another one lives")
		default:
			w.say("wait %d", wait)
		}
	case "begin", "registered", "copy", "older":
		w.disk(cmd, args)
	default:
		w.seen(cmd, args)
	}
}

// disk does something to what a disk knows of starts, or asks it.
func (w *world) disk(cmd string, args []string) {
	if w.starts == nil {
		w.starts = map[string]Starts{}
	}
	s := w.starts[args[0]]
	switch cmd {
	case "begin": // disk start
		s = s.Begin(w.num(args[1]))
		w.say("known %d at %d, tells %v", s.Known, s.Change, s.Before(w.num(args[1])))
	case "registered": // disk start change
		s = s.Registered(w.num(args[1]), w.num(args[2]))
		w.say("known %d at %d, tells %v", s.Known, s.Change, s.Before(w.num(args[1])))
	case "copy": // from to
		w.starts[args[1]] = s
		return
	case "older": // disk start change
		w.say("older: %v", s.Older(w.num(args[1]), w.num(args[2])))
	}
	w.starts[args[0]] = s
}

func (w *world) seen(cmd string, args []string) {
	switch cmd {
	case "route":
		w.presence.Route(args[0], args[1] == "up")
	case "heard":
		w.presence.Heard(args[0], w.num(append(args, "0")[1]))
	case "farewell":
		w.presence.Farewell(args[0], w.num(args[1]))
	case "forget":
		w.presence.Forget(func(id string) bool { return id != args[0] })
	case "changes":
		for _, c := range w.presence.Changes() {
			w.say("%s away: %v", c.Node, c.Away)
		}
	case "greet": // ms
		ids, next := w.presence.Greetings(int64(w.num(args[0])) * 1e6)
		w.say("greet %v, again at %d", ids, next/1e6)
	default:
		w.t.Fatalf("unknown command %q", cmd)
	}
}
