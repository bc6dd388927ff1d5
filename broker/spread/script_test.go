package spread

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/internal/transcript"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The files in testdata/golden are scripts. This node has number 1; its buckets are shared by two shards. A state is made step by step
// and applied with "applied CHANGE"; what the shards' buckets are told is printed as it is done. Times are milliseconds.
func TestScripts(t *testing.T) {
	transcript.Play(t, func(t *testing.T) transcript.World {
		w := &world{state: &shared.State{Settings: shared.DefaultSettings()}}
		return func(t *testing.T, out *strings.Builder, words []string) {
			w.t, w.out = t, out
			w.do(words)
		}
	})
}

type world struct {
	t      *testing.T
	out    *strings.Builder
	state  *shared.State
	node   *Node
	shards []*shard
	wait   bool
}

// shard is a Host whose buckets print what they are told.
type shard struct {
	w     *world
	index int
	cells []*cell
	share *Share[*cell, *cell]
	queue []Task
}

// cell is a bucket and its replica.
type cell struct {
	s      *shard
	number uint32
	view   chain.View
	fails  bool
}

const ms = 1_000_000

func (w *world) num(s string) uint64 {
	w.t.Helper()
	return transcript.Uint(w.t, s)
}

func (w *world) view(s string) chain.View {
	w.t.Helper()
	return transcript.View(w.t, s, 1)
}

func (w *world) tell(tasks []Task) {
	for i := range tasks {
		number, one := tasks[i].Only()
		for _, s := range w.shards {
			if !one || int(number)%len(w.shards) == s.index {
				s.queue = append(s.queue, tasks[i])
			}
		}
	}
	if !w.wait {
		w.work()
	}
}

func (w *world) work() {
	for _, s := range w.shards {
		for i := range s.queue {
			fmt.Fprintf(w.out, "shard %d: %s\n", s.index, s.queue[i].Kind)
			s.share.Do(s, &s.queue[i])
		}
		s.queue = nil
	}
}

func (w *world) bucket(number uint32) *cell {
	s := w.shards[int(number)%len(w.shards)]
	c := &cell{s: s, number: number}
	s.cells = append(s.cells, c)
	return c
}

func (w *world) open() {
	w.node = NewNode(w.state)
	for i := range 2 {
		s := &shard{w: w, index: i}
		s.share = NewShare[*cell, *cell](1, i, 2, w.state)
		w.shards = append(w.shards, s)
	}
	for number := range w.state.Views {
		w.bucket(uint32(number))
	}
	w.tell(w.node.Opened())
}

// change makes another state, and says whether the words were about that.
func (w *world) change(f []string) bool {
	next := *w.state
	switch f[0] {
	case "node": // node NUMBER [LOCATION]
		n := shared.Node{Number: w.num(f[1]), Life: 1, Priority: 5, Location: strings.Join(f[2:], "")}
		next.Nodes = append(w.without(n.Number), n)
		next.Last = max(next.Last, n.Number)
	case "remove":
		next.Nodes = w.without(w.num(f[1]))
	case "copies":
		next.Settings.Copies = int(w.num(f[1]))
	case "max_lease":
		next.Settings.MaxLease = time.Duration(w.num(f[1])) * ms
	case "views": // views VIEW…: of the state
		next.Views = nil
		for _, s := range f[1:] {
			next.Views = append(next.Views, w.view(s))
		}
	default:
		return false
	}
	w.state = &next
	return true
}

func (w *world) without(number uint64) []shared.Node {
	return slices.DeleteFunc(slices.Clone(w.state.Nodes), func(n shared.Node) bool { return n.Number == number })
}

func (w *world) do(f []string) {
	if w.change(f) {
		return
	}
	switch f[0] {
	case "open": // the buckets of the state begin here
		w.open()
	case "begin": // begin BUCKET: another one was split
		c := w.bucket(uint32(w.num(f[1])))
		c.s.share.Begin(c.s, c)
	case "busy": // the shards are in a batch
		w.wait = true
	case "work":
		w.wait = false
		w.work()
	case "fails": // fails BUCKET: what its replica can refuse it refuses
		number := uint32(w.num(f[1]))
		c, _ := w.shards[number%2].Cell(number)
		c.fails = true
	case "applied": // applied CHANGE
		next := *w.state
		next.Change = w.num(f[1])
		w.state = &next
		w.tell(w.node.Applied(w.state.Change, w.state, w.state.Settings.MaxLease))
	case "install": // install BUCKET VIEW
		w.node.Install([]shared.BucketView{{Bucket: uint32(w.num(f[1])), View: w.view(f[2])}})
	case "grant": // grant UNTIL UNDER
		w.tell(w.node.Grant(chain.Lease{Until: int64(w.num(f[1])) * ms, Under: w.num(f[2])}))
	case "away", "back":
		w.tell(w.node.Away(w.num(f[1]), f[0] == "away"))
	case "seal": // seal BUCKET EPOCH
		w.tell(w.node.Seal([]plan.SealOrder{{Node: 1, Bucket: uint32(w.num(f[1])), Epoch: w.num(f[2])}}))
	case "handover": // handover BUCKET EPOCH TO
		w.tell(w.node.HandOver([]plan.HandOverOrder{{Node: 1, Bucket: uint32(w.num(f[1])), Epoch: w.num(f[2]), To: chain.Member{Node: w.num(f[3]), Inc: 1}}}))
	case "refused": // refused BUCKET VIEW
		w.tell(w.node.Refused(uint32(w.num(f[1])), w.view(f[2])))
	default:
		w.t.Fatalf("unknown: %v", f)
	}
}

func (s *shard) Cells() []*cell { return s.cells }

func (s *shard) Cell(number uint32) (*cell, bool) {
	for _, c := range s.cells {
		if c.number == number {
			return c, true
		}
	}
	return nil, false
}

func (s *shard) Touch(c *cell) { c.say("touch") }
func (s *shard) Due(c *cell)   { c.say("due") }

func (s *shard) Outcome(what Kind, number uint32, err error) {
	fmt.Fprintf(s.w.out, "  outcome of %s, bucket %d: %v\n", what, number, err)
}

func (c *cell) say(format string, args ...any) {
	fmt.Fprintf(c.s.w.out, "  %d: %s\n", c.number, fmt.Sprintf(format, args...))
}

func (c *cell) refuse() error {
	if c.fails {
		return errors.New("it cannot")
	}
	return nil
}

func (c *cell) Number() uint32          { return c.number }
func (c *cell) Chain() *cell            { return c }
func (c *cell) Refused(v *chain.View)   { c.say("refused %v", v) }
func (c *cell) Applied(change uint64)   { c.say("applied %d", change) }
func (c *cell) Grant(l chain.Lease)     { c.say("grant until %d under %d", l.Until/ms, l.Under) }
func (c *cell) Seal(epoch uint64)       { c.say("seal %d", epoch) }
func (c *cell) View() chain.View        { return c.view }
func (c *cell) Away(n uint64, a bool)   { c.say("node %d away %t", n, a) }
func (c *cell) Join()                   { c.say("join") }
func (c *cell) Score(n uint64, v int64) { c.say("score of node %d: %d", n, v) }

func (c *cell) SetLeases(longest time.Duration, recovery int64) {
	c.say("longest lease %s, recovery %s", longest, time.Duration(recovery))
}

func (c *cell) Install(v chain.View) error {
	c.say("install %v", v)
	c.view = v
	return c.refuse()
}

func (c *cell) HandOver(to chain.Member) error {
	c.say("hand over to node %d", to.Node)
	return c.refuse()
}

func (c *cell) Leave() error {
	c.say("leave")
	return c.refuse()
}
