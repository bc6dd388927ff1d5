package check_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/opencluster/oclocks/internal/check"
	"github.com/opencluster/oclocks/subjects"
)

// corruption breaks a promise in a correct history. It gives the history with one thing changed, nil if it has nothing to change.
type corruption struct {
	name string
	want []check.Promise // any of them
	do   func(history []check.Event) []check.Event
}

// grants pairs the first grants of a history with their requests.
func grants(history []check.Event, do func(ask, answer int) bool) bool {
	asked, told := map[[2]string]int{}, map[[2]string]bool{}
	for i := range history {
		e := &history[i]
		id := [2]string{e.Client, e.Request}
		switch {
		case e.Kind == check.Ask && e.Op == subjects.OpAcquire:
			asked[id] = i
		case e.Kind == check.Answer && e.Code == 200 && e.Token != 0 && e.Ticket != 0 && !told[id]:
			told[id] = true
			if do(asked[id], i) {
				return true
			}
		}
	}
	return false
}

// insert puts events behind one of the history, at its time.
func insert(history []check.Event, behind int, events ...check.Event) []check.Event {
	for i := range events {
		events[i].At = history[behind].At
	}
	return slices.Insert(history, behind+1, events...)
}

// believed finds a belief in an exclusive hold that lasts for a while. A hold whose acquire its client has cancelled meanwhile is none: it
// may be over at any time.
func believed(history []check.Event) int {
	type grant struct {
		zone, client string
		token        uint64
	}
	cancelled, asked := map[[2]string]bool{}, map[grant]string{}
	return slices.IndexFunc(history, func(e check.Event) bool {
		g := grant{e.Zone, e.Client, e.Token}
		switch {
		case e.Kind == check.Ask && e.Op == subjects.OpCancel:
			cancelled[[2]string{e.Client, e.Of}] = true
		case e.Kind == check.Answer && e.Code == 200 && e.Ticket != 0:
			asked[g] = e.Request
		}
		return e.Kind == check.Believe && e.Name == "x" && e.Until > e.At+100*msec && !cancelled[[2]string{e.Client, asked[g]}]
	})
}

var corruptions = []corruption{
	{"a token that was told before", []check.Promise{check.Tokens}, func(history []check.Event) []check.Event {
		var first *check.Event
		found := grants(history, func(ask, answer int) bool {
			switch {
			case history[ask].Name != "x" || history[ask].Zone != "z":
			case first == nil || first.Client == history[answer].Client:
				first = &history[answer]
			case first.At < history[ask].At:
				history[answer].Token = first.Token
				return true
			}
			return false
		})
		return when(found, history)
	}},
	{"a second holder", []check.Promise{check.Exclusion}, func(history []check.Event) []check.Event {
		i := believed(history)
		if i < 0 {
			return nil
		}
		e := check.Event{Zone: history[i].Zone, Client: "intruder", Request: "1", Name: "x"}
		ask, answer, believe := e, e, e
		ask.Kind, ask.Op = check.Ask, subjects.OpAcquire
		answer.Kind, answer.Code, answer.Token = check.Answer, 200, history[i].Token+1
		believe.Kind, believe.Token, believe.Until = check.Believe, answer.Token, check.Never
		return insert(history, i, ask, answer, believe)
	}},
	{"a hold is lost too early", []check.Promise{check.Kept}, func(history []check.Event) []check.Event {
		i := believed(history)
		if i < 0 {
			return nil
		}
		b := history[i]
		return insert(history, i, check.Event{Kind: check.Lost, Zone: b.Zone, Client: b.Client, Name: b.Name, Token: b.Token, Why: subjects.WhyExpired})
	}},
	{"a release comes undone", []check.Promise{check.Over}, func(history []check.Event) []check.Event {
		asked := map[[2]string]*check.Event{}
		for i := range history {
			e := &history[i]
			id := [2]string{e.Client, e.Request}
			if e.Kind == check.Ask && e.Op == subjects.OpRelease {
				asked[id] = e
			}
			if a := asked[id]; e.Kind == check.Answer && a != nil && e.Code == 200 {
				seen := check.Event{Kind: check.Seen, Zone: e.Zone, Client: e.Client, Name: a.Name, Holders: []check.Holder{{Token: e.Token}}, Since: e.At + 1, Part: true}
				history = insert(history, i, seen)
				history[i+1].At = e.At + 1
				return when(i+2 >= len(history) || history[i+2].At > e.At, history)
			}
		}
		return nil
	}},
	{"the tickets of two that waited are changed", []check.Promise{check.Queue, check.Tokens, check.Once}, func(history []check.Event) []check.Event {
		var last [2]int
		found := grants(history, func(ask, answer int) bool {
			if history[ask].Name != "x" || history[ask].Zone != "z" {
				return false
			}
			if history[last[1]].Ticket > 1 && history[ask].At > history[last[1]].At {
				history[answer].Ticket = history[last[1]].Ticket - 1
				return true
			}
			last = [2]int{ask, answer}
			return false
		})
		return when(found, history)
	}},
	{"a wait ends too soon", []check.Promise{check.Wait}, func(history []check.Event) []check.Event {
		for i := range history {
			if history[i].Code != 408 {
				continue
			}
			for j := range history {
				if e := &history[j]; e.Kind == check.Ask && e.Client == history[i].Client && e.Request == history[i].Request {
					e.Wait *= 3
					return history
				}
			}
		}
		return nil
	}},
	{"a request has a second effect", []check.Promise{check.Once}, func(history []check.Event) []check.Event {
		at := -1
		grants(history, func(_, answer int) bool { at = answer; return true })
		if at < 0 {
			return nil
		}
		again := history[at]
		again.Token += 1000
		return insert(history, at, again)
	}},
	{"another zone's client is shown", []check.Promise{check.Zones}, func(history []check.Event) []check.Event {
		i := slices.IndexFunc(history, func(e check.Event) bool {
			return e.Kind == check.Seen && len(e.Holders) > 0 && e.Zone == "z" && e.At > 2*int64(time.Second)
		})
		if i < 0 {
			return nil
		}
		history[i].Holders = []check.Holder{{Token: history[i].Holders[0].Token, Client: "c0"}}
		return history
	}},
	{"another zone's lock is heard of", []check.Promise{check.Zones}, func(history []check.Event) []check.Event {
		i := slices.IndexFunc(history, func(e check.Event) bool { return e.Kind == check.Ask && e.Name == "only-y" })
		if i < 0 {
			return nil
		}
		return insert(history, i, check.Event{Kind: check.Noticed, Zone: "z", Client: "listener", Name: "only-y"})
	}},
	{"a free lock is refused", []check.Promise{check.Linear}, func(history []check.Event) []check.Event {
		e := check.Event{Zone: "z", Client: "c9", Request: "1", Name: "free"}
		ask, answer := e, e
		ask.Kind, ask.Op = check.Ask, subjects.OpAcquire
		answer.Kind, answer.Code = check.Answer, 409
		return insert(history, len(history)/2, ask, answer)
	}},
	{"a waiter is forgotten", []check.Promise{check.Queue}, func(history []check.Event) []check.Event {
		ask := check.Event{Kind: check.Ask, Op: subjects.OpAcquire, Zone: "z", Client: "c9", Request: "1", Name: "x", Wait: time.Second}
		return insert(history, 0, ask)
	}},
	{"a hold that nobody asked for", []check.Promise{check.Once}, func(history []check.Event) []check.Event {
		e := check.Event{Zone: "z", Client: "c9", Request: "1", Name: "alone"}
		ask, answer := e, e
		ask.Kind, ask.Op = check.Ask, subjects.OpAcquire
		answer.Kind, answer.Code, answer.Token = check.Answer, 200, 7
		seen := check.Event{Kind: check.Seen, Zone: "z", Client: "c9", Name: "alone", Holders: []check.Holder{{Token: 7}, {Token: 9}}}
		return insert(history, len(history)/2, ask, answer, seen)
	}},
}

func when(ok bool, history []check.Event) []check.Event {
	if !ok {
		return nil
	}
	return history
}

// cancelledSeed is a history whose first belief is in a hold whose acquire was cancelled while its grant was on the way.
const cancelledSeed = 490

// TestCorruptedHistoriesAreFound breaks correct histories in each of these ways, and wants each found.
func TestCorruptedHistoriesAreFound(t *testing.T) {
	for _, c := range corruptions {
		t.Run(c.name, func(t *testing.T) {
			c.find(t, cancelledSeed)
			tried := 0
			rapid.Check(t, func(t *rapid.T) {
				if c.find(t, rapid.Uint64Range(1, 1<<40).Draw(t, "seed")) {
					tried++
				}
			})
			if tried < 20 {
				t.Errorf("only %d histories could be broken so", tried)
			}
		})
	}
}

// find wants the history of a seed found to be wrong when it is broken. It says whether it could be broken.
func (c *corruption) find(t rapid.TB, seed uint64) bool {
	history := c.do(slices.Clone(newNaive(seed).run(5 * time.Second)))
	if history == nil {
		return false
	}
	k := check.New(check.Options{MaxViolations: 1000})
	for i := range history {
		k.Add(&history[i])
	}
	k.End(history[len(history)-1].At+int64(time.Minute), c.name == "a waiter is forgotten")
	if !slices.ContainsFunc(k.Violations(), func(v check.Violation) bool { return slices.Contains(c.want, v.Promise) }) {
		t.Fatalf("seed %d: not found; instead: %v", seed, fmt.Sprint(k.Violations()))
	}
	return true
}
