package leave

import (
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/internal/transcript"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The files in testdata/golden are scripts. Times are milliseconds. This node has number 1; node n has the raft ID n.
func TestScripts(t *testing.T) {
	transcript.Play(t, func(t *testing.T) transcript.World {
		w := &world{l: New(1), f: Facts{State: &shared.State{}, Status: core.Status{Raft: 1, Voters: []uint64{1, 2, 3}}, Away: map[uint64]bool{}}}
		for n := uint64(1); n <= 3; n++ {
			w.f.State.Nodes = append(w.f.State.Nodes, shared.Node{Number: n, Raft: n})
		}
		return func(t *testing.T, out *strings.Builder, words []string) {
			w.t, w.out = t, out
			w.do(words)
		}
	})
}

type world struct {
	t   *testing.T
	out *strings.Builder
	l   *Leaving
	f   Facts
}

const ms = 1_000_000

func (w *world) num(s string) uint64 {
	w.t.Helper()
	return transcript.Uint(w.t, s)
}

func (w *world) do(f []string) {
	switch f[0] {
	case "unregistered":
		w.l = New(0)
	case "primaries": // primaries NODE…, by bucket
		st := *w.f.State
		st.Views = nil
		for _, s := range f[1:] {
			st.Views = append(st.Views, chain.View{Epoch: 1, Chain: []chain.Member{{Node: w.num(s), Inc: 1}}, InSync: 1})
		}
		w.f.State = &st
	case "voters":
		w.f.Status.Voters = nil
		for _, s := range f[1:] {
			w.f.Status.Voters = append(w.f.Status.Voters, w.num(s))
		}
	case "leads":
		w.f.Status.Leading = true
	case "follows":
		w.f.Status.Leading = false
	case "away":
		w.f.Away[w.num(f[1])] = true
	case "arbiter":
		w.f.State.Node(w.num(f[1])).Arbiter = true
	case "late":
		w.f.Late = true
	case "step": // step NOW [others N|silence|moved]
		w.step(int64(w.num(f[1]))*ms, f[2:])
	default:
		w.t.Fatalf("unknown: %v", f)
	}
}

func (w *world) step(now int64, f []string) {
	var heard *Heard
	if len(f) > 0 {
		heard = &Heard{}
		switch f[0] {
		case "others":
			*heard = Heard{Asked: true, Others: int(w.num(f[1]))}
		case "moved":
			*heard = Heard{Moved: true}
		case "silence":
			*heard = Silence
		default:
			w.t.Fatalf("unknown: %v", f)
		}
	}
	w.f.Now = now
	out := w.l.Step(w.f, heard)
	fmt.Fprintf(w.out, "%d:", now/ms)
	for _, is := range []struct {
		name string
		is   bool
	}{{"ask", out.Ask}, {"transfer", out.Transfer}, {"done", out.Done}, {"mute", out.Mute}} {
		if is.is {
			fmt.Fprintf(w.out, " %s", is.name)
		}
	}
	if out.Err != nil {
		fmt.Fprintf(w.out, ": %v (%d left)", out.Err, out.Left)
	}
	fmt.Fprintf(w.out, " next=%d\n", out.Next/ms)
}
