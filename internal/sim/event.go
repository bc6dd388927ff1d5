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
	do    func()
}

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.order < o.order }

// agenda is a binary heap of events.
type agenda []event

func (a *agenda) push(e event) {
	list := append(*a, e)
	i := len(list) - 1
	for i > 0 {
		up := (i - 1) / 2
		if !list[i].before(&list[up]) {
			break
		}
		list[i], list[up] = list[up], list[i]
		i = up
	}
	*a = list
}

func (a *agenda) pop() event {
	list := *a
	top := list[0]
	last := len(list) - 1
	list[0], list[last] = list[last], event{}
	list = list[:last]
	for i := 0; ; {
		least := i
		for _, child := range [...]int{2*i + 1, 2*i + 2} {
			if child < last && list[child].before(&list[least]) {
				least = child
			}
		}
		if least == i {
			break
		}
		list[i], list[least] = list[least], list[i]
		i = least
	}
	*a = list
	return top
}

// actor is one goroutine of a process: it has turns, when it was rung for or when it wanted one.
type actor struct {
	p     *process
	name  string
	at    int64        // of its next turn
	stall int64        // it gets no processor before
	turn  func()       // one turn
	next  func() int64 // by the machine's clock: when it wants a turn without being rung for
	over  bool

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
	a.at = at
	a.p.w.plan(at, func() {
		if a.at != at || a.over || a.p.dead {
			return
		}
		a.at = never
		if until := max(a.p.m.paused, a.stall); until > a.p.w.now {
			a.wake(until + a.p.m.lag())
			return
		}
		if a.p.w.now > a.second+second {
			a.second, a.turns = a.p.w.now, 0
		}
		if a.turns++; a.turns > maxTurns {
			a.p.w.fail("%v: %s has had %d turns in a second: it goes round and round", a.p.m, a.name, a.turns)
		}
		a.turn()
		if a.over || a.p.dead {
			return
		}
		if next := a.next(); next != never {
			a.wake(max(a.p.m.real(next), a.p.w.now+5*us)) // a turn takes some time
		}
	})
}
