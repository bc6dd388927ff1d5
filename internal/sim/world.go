package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

// world is a cluster, its clients, the network between them, and what goes wrong.
type world struct {
	recipe Recipe
	seed   uint64
	now    int64
	order  uint64
	crowd  int // events at this very time
	agenda agenda
	rnd    *rand.Rand
	mix    mix

	machines []*machine
	zones    []string
	clients  []*client // without a session
	members  []*member // with one
	inboxes  map[address]receiver
	cids     uint64 // connections of clients
	forces   int

	lockEvents bool // the zones have them switched on
	links      [maxMachines * maxMachines]link
	spared     int64 // nothing more is taken from the group before
	quiet      int64 // no fault before
	calm       int64 // no burst before
	began      int64
	views      int // that were seen when there might have been a burst
	causes     int // of the driver
	bursts     int
	caused     []cause
	traps      []trap
	healed     bool // nothing goes wrong any more

	check checker
	print fingerprint
	stats Stats
	story story
	wrong []string

	lineages int  // of journals
	telling  bool // the story is kept
}

// maxCrowd is how many events may have the same time.
const maxCrowd = 10_000

// maxWrong is how many violations end a run.
const maxWrong = 1

func newWorld(recipe Recipe) *world {
	seed := recipe.Seed
	w := &world{
		recipe: recipe, seed: seed, began: second, now: second, rnd: rand.New(rand.NewPCG(seed, 0x0c10c5)),
		inboxes: map[address]receiver{},
	}
	w.stats.Faults, w.stats.Ops = map[string]int{}, map[string]int{}
	w.mix = drawMix(w.rnd, recipe.Theme)
	recipe.restrict(&w.mix)
	w.check = newChecker(w)
	for i := range w.mix.nodes {
		w.machines = append(w.machines, newMachine(w, i))
	}
	w.countClocks()
	for i, m := range w.machines {
		w.after(int64(i)*20*ms, func() { m.boot() })
	}
	w.populate()
	return w
}

func (w *world) plan(at int64, do func()) {
	w.order++
	w.agenda.push(event{at: max(at, w.now), order: w.order, turn: happening(do)})
}

func (w *world) after(d int64, do func()) { w.plan(w.now+d, do) }

// run lets time pass up to an instant, or until something is wrong.
func (w *world) run(until int64) {
	for len(w.agenda.list) > 0 && w.agenda.list[0].at <= until && len(w.wrong) < maxWrong {
		e := w.agenda.pop()
		if e.at > w.now {
			w.now, w.crowd = e.at, 0
		}
		if w.crowd++; w.crowd > maxCrowd {
			w.fail("%d things happen at once: something goes round and round", w.crowd)
		}
		w.stats.Events++
		e.turn.act()
		if w.views != w.stats.Views {
			w.views = w.stats.Views
			w.burst()
		}
	}
	if len(w.wrong) < maxWrong {
		w.now = max(w.now, until)
	}
}

// draw is a number from 0 to n-1.
func (w *world) draw(n int) int { return w.rnd.IntN(n) }

// between is a time from low to high.
func (w *world) between(low, high int64) int64 {
	if high <= low {
		return low
	}
	return low + w.rnd.Int64N(high-low)
}

func (w *world) chance(p float64) bool { return p > 0 && w.rnd.Float64() < p }

// fail notes a violation.
func (w *world) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.wrong = append(w.wrong, w.stamp()+" "+text)
	w.tell("VIOLATION %s", text)
}

// machine is a computer: a clock, a disk, and a process if it is up.
type machine struct {
	w      *world
	index  int
	id     string // identifier of the node; another one after the node was removed
	ids    int
	rate   float64
	offset int64
	skew   int64 // of the wall clock, milliseconds

	disk   disk
	copies []disk   // older states of the disk
	p      *process // nil: it is down
	gen    int      // counts processes
	level  uint32   // of the program that is installed (conf/shared); 0: 1
	paused int64    // all of it stands still until then
	slow   int64    // everything takes longer until then
	down   bool     // it is not to be started by itself
	boots  bool     // a start is planned
	tear   bool     // the process dies in the middle of its next write
	boots0 int      // counts starts of the machine
	twin   *disk    // its own disk, while it has another node's identifier
	twinID string   // and its own identifier
}

func newMachine(w *world, index int) *machine {
	m := &machine{w: w, index: index, rate: w.mix.rate(w.rnd)}
	m.offset = w.between(0, 1000*second)
	m.skew = w.between(-5000, 5000)
	m.rename()
	m.disk = newDisk(w)
	return m
}

func (m *machine) rename() {
	m.ids++
	m.id = fmt.Sprintf("aaaaaaaaaaaaaaaaaaaaaaa%c%c%c", 'a'+m.ids/26, 'a'+m.ids%26, 'a'+m.index)
}

// clock is what the machine's boot-time clock shows.
func (m *machine) clock() int64 { return m.offset + int64(float64(m.w.now)*m.rate) }

// real is when its clock shows that.
func (m *machine) real(clock int64) int64 {
	if clock >= never/2 {
		return never
	}
	return int64(float64(clock-m.offset)/m.rate) + 1
}

func (m *machine) wall() int64 { return wallBase + m.w.now/ms + m.skew }

// wallBase is 2026-06-01 UTC in Unix milliseconds.
const wallBase = 1_780_272_000_000

// lag is how long it takes until a goroutine that was rung for runs.
func (m *machine) lag() int64 {
	if m.slow > m.w.now {
		return m.w.between(ms, 40*ms)
	}
	if m.w.mix.jitter > 0 && m.w.chance(0.02) {
		return m.w.between(us, m.w.mix.jitter)
	}
	return m.w.between(us, 60*us)
}

func (m *machine) String() string { return fmt.Sprintf("m%d", m.index) }

// committed is the newest shared configuration that anybody has applied.
func (w *world) committed() *shared.State { return w.check.state }

func viewOf(s *shared.State, b uint32) *chain.View {
	if s == nil || b >= s.Buckets() {
		return &chain.View{}
	}
	return &s.Views[b]
}

func span(d int64) string { return time.Duration(d).String() }
