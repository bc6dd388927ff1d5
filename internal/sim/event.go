package sim

import "math"

// Times are nanoseconds of the world, which no machine can read, unless said otherwise.
const (
	us     int64 = 1_000
	ms     int64 = 1_000_000
	second int64 = 1_000_000_000
	never  int64 = math.MaxInt64
)

// event is something that happens at a time. Those of one time happen in the order in which they were planned.
type event struct {
	at    int64
	order uint64
	turn  turn
}

// turn is what happens: that of an actor, the arrival of a parcel, or something else.
type turn interface{ act() }

// happening is something that happens by itself.
type happening func()

func (h happening) act() { h() }

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.order < o.order }

// agenda is a heap of events, each with four below it. An actor is in it once at the most, and knows where, so that a turn can be
// brought forward.
type agenda struct{ list []event }

const branches = 4

func (a *agenda) put(i int, e event) {
	a.list[i] = e
	if a, ok := e.turn.(*actor); ok {
		a.place = i
	}
}

// rise puts an event where it belongs, at i or above it.
func (a *agenda) rise(i int, e event) {
	for i > 0 {
		up := (i - 1) / branches
		if !e.before(&a.list[up]) {
			break
		}
		a.put(i, a.list[up])
		i = up
	}
	a.put(i, e)
}

func (a *agenda) push(e event) {
	a.list = append(a.list, event{})
	a.rise(len(a.list)-1, e)
}

func (a *agenda) pop() event {
	top := a.list[0]
	last := len(a.list) - 1
	moved := a.list[last]
	a.list[last] = event{}
	a.list = a.list[:last]
	if last == 0 {
		return top
	}
	i := 0
	for {
		first := branches*i + 1
		if first >= last {
			break
		}
		least := first
		for child := first + 1; child < min(first+branches, last); child++ {
			if a.list[child].before(&a.list[least]) {
				least = child
			}
		}
		if !a.list[least].before(&moved) {
			break
		}
		a.put(i, a.list[least])
		i = least
	}
	a.put(i, moved)
	return top
}

// actor is one goroutine of a process: it has turns, when it was rung for or when it wanted one.
type actor struct {
	p       *process
	name    string
	at      int64        // of its next turn
	place   int          // in the agenda, if at is a time
	stall   int64        // it gets no processor before
	stalled bool         // and has noticed
	turn    func()       // one turn
	next    func() int64 // by the machine's clock: when it wants a turn without being rung for
	over    bool

	second int64 // the one in which the turns are counted
	turns  int
}

// maxTurns is how many turns one goroutine may need in a second.
const maxTurns = 50_000

func (p *process) actor(name string, turn func(), next func() int64) *actor {
	return &actor{p: p, name: name, at: never, turn: turn, next: next}
}

// ring gives the actor a turn soon.
func (a *actor) ring() { a.wake(a.p.w.now + a.p.m.lag()) }

func (a *actor) wake(at int64) {
	if at >= a.at || a.over {
		return
	}
	w := a.p.w
	w.order++
	e := event{at: max(at, w.now), order: w.order, turn: a}
	planned := a.at != never
	a.at = at
	if planned {
		w.agenda.rise(a.place, e)
	} else {
		w.agenda.push(e)
	}
}

// act is the actor's turn, if its process lives and its machine goes.
func (a *actor) act() {
	a.at = never
	w := a.p.w
	if a.over || a.p.dead {
		return
	}
	if until := max(a.p.m.paused, a.stall); until > w.now {
		if a.stall > w.now && !a.stalled {
			a.stalled = true
			w.fault("goroutine stalled")
		}
		a.wake(until + a.p.m.lag())
		return
	}
	if w.now > a.second+second {
		a.second, a.turns = w.now, 0
	}
	if a.turns++; a.turns > maxTurns {
		w.fail("%v: %s has had %d turns in a second: it goes round and round", a.p.m, a.name, a.turns)
	}
	a.turn()
	if a.over || a.p.dead {
		return
	}
	if next := a.next(); next != never {
		a.wake(max(a.p.m.real(next), w.now+5*us)) // a turn takes some time
	}
}
