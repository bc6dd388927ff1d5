package sim

import (
	"fmt"
	"slices"

	"github.com/opencluster/oclocks/arbiter/core"
	"github.com/opencluster/oclocks/conf/shared"
)

// operatorKinds are what operators do while things go wrong. A command counts when it was applied.
var operatorKinds = []kind{
	{"leadership transferred", (*world).transfer},
	{"node leaves and comes back", func(w *world) bool {
		m := w.someServing()
		if m == nil || m.p.leaving != nil {
			return false
		}
		m.p.leave()
		return true
	}},
	{"buckets doubled", func(w *world) bool {
		state := w.committed()
		if state == nil || state.Buckets() == 0 || state.Buckets() > 8 {
			return false
		}
		if w.mix.bursts { // more goes wrong while they are split
			for range 2 {
				w.after(w.between(0, 60*ms), func() { w.calm = 0; w.burst() })
			}
		}
		return w.command("buckets doubled", shared.Command{Double: &shared.Double{Buckets: state.Buckets()}})
	}},
	{"acks changed", func(w *world) bool {
		if w.mix.acks == "majority" {
			return false
		}
		return w.set("acks changed", "acks", "first", "all")
	}},
	{"session_lease changed", func(w *world) bool { return w.set("session_lease changed", "session_lease", "1s", "2s", "3s", "4s") }},
	{"max_lease changed", func(w *world) bool {
		limit := [...]string{"1s", "2s", "4s", "10s", "20s"}[w.draw(5)]
		change := map[string]string{"max_lease": limit, "session_lease": "1s"} // which must not be longer
		return w.command("max_lease changed", shared.Command{Set: &shared.Set{Settings: change}})
	}},
	{"give_up changed", func(w *world) bool { return w.set("give_up changed", "give_up", "1s", "2s", "5s") }},
	{"min_quorum changed", func(w *world) bool { return w.set("min_quorum changed", "min_quorum", "1", "2", "3") }},
	{"voters changed", func(w *world) bool { return w.set("voters changed", "voters", "3", "5") }},
	{"copies changed", func(w *world) bool { return w.set("copies changed", "copies", "0", "2", "3") }},
	{"balance changed", func(w *world) bool { return w.set("balance changed", "balance", "true", "false") }},
	{"node drained or not", func(w *world) bool {
		n := w.someNode()
		if n == nil {
			return false
		}
		drain := !n.Drain
		return w.command("node drained or not", shared.Command{Node: &shared.NodeEdit{Number: n.Number, Drain: &drain}})
	}},
	{"node's priority changed", func(w *world) bool {
		n := w.someNode()
		if n == nil {
			return false
		}
		priority := 1 + w.draw(15)
		return w.command("node's priority changed", shared.Command{Node: &shared.NodeEdit{Number: n.Number, Priority: &priority}})
	}},
	{"node's location changed", func(w *world) bool {
		n := w.someNode()
		if n == nil {
			return false
		}
		location := fmt.Sprintf("l%d", w.draw(3))
		return w.command("node's location changed", shared.Command{Node: &shared.NodeEdit{Number: n.Number, Location: &location}})
	}},
	{"bucket moved by hand", func(w *world) bool {
		n, state := w.someNode(), w.committed()
		if n == nil || state.Buckets() == 0 {
			return false
		}
		pin := &shared.Pin{Bucket: uint32(w.draw(int(state.Buckets()))), Number: n.Number}
		return w.command("bucket moved by hand", shared.Command{Pin: pin})
	}},
	{"all buckets moved by hand", func(w *world) bool {
		n, state := w.someNode(), w.committed()
		if n == nil || state.Buckets() == 0 {
			return false
		}
		for b := range state.Buckets() {
			w.command("all buckets moved by hand", shared.Command{Pin: &shared.Pin{Bucket: b, Number: n.Number}})
		}
		return false
	}},
	{"bucket left to the planner again", func(w *world) bool {
		state := w.committed()
		if state == nil || len(state.Pins) == 0 {
			return false
		}
		bucket := uint32(w.draw(int(state.Buckets())))
		if _, pinned := state.Pins[bucket]; !pinned {
			return false
		}
		return w.command("bucket left to the planner again", shared.Command{Unpin: &shared.Unpin{Bucket: bucket}})
	}},
	{"configuration locked for a while", func(w *world) bool {
		w.after(w.between(100*ms, 3*second), func() { w.command("", shared.Command{Unlock: &shared.Lock{}}) })
		return w.command("configuration locked for a while", shared.Command{Lock: &shared.Lock{}})
	}},
	{"command of a newer version", func(w *world) bool {
		return w.propose("", []byte(`{"op":"merge","merge":{"buckets":4}}`), func(o outcome) {
			if r, ok := o.result.(shared.Result); ok && r.Err() != nil {
				w.fault("command of a newer version")
			} else if ok {
				w.fail("a command that nobody knows was taken")
			}
		})
	}},
	{"command of a later level", (*world).laterCommand},
	{"program upgraded", func(w *world) bool { return w.install(w.anyMachine(), laterLevel) }},
	{"older program started", func(w *world) bool { return w.install(w.anyMachine(), 1) }},
	{"node added", func(w *world) bool {
		if len(w.machines) >= maxMachines-1 || w.draw(2) > 0 {
			return false
		}
		m := newMachine(w, len(w.machines))
		w.machines = append(w.machines, m)
		w.tell("%v is added", m)
		m.boot()
		return true
	}},
	{"node removed", func(w *world) bool {
		n := w.someNode()
		if n == nil || w.draw(3) > 0 {
			return false
		}
		m := w.byNumber(n.Number)
		if m == nil || m.disk.raft != n.Raft || !w.spare(m) {
			return false
		}
		return w.command("node removed", shared.Command{Remove: &shared.Remove{Number: n.Number}})
	}},
	{"node replaced", func(w *world) bool {
		m := w.someServing()
		if m == nil || w.draw(2) > 0 || !w.spare(m) {
			return false
		}
		number := m.p.number
		w.stop(m, "another machine takes its place")
		m.leaveCluster()
		m.restart(w.between(ms, 2*second))
		return w.command("node replaced", shared.Command{Remove: &shared.Remove{Number: number}})
	}},
}

// transfer has the leader give the leadership to another voter.
func (w *world) transfer() bool {
	p := w.leader()
	if p == nil {
		return false
	}
	p.transfer(func(outcome) {})
	return true
}

func (p *process) transfer(done func(outcome)) {
	p.arb.call(second, false, func(id uint64) error {
		err := p.arb.node.Transfer(0)
		if err == nil {
			p.arb.end(id, outcome{})
		}
		return err
	}, done)
}

// leader is the process that leads, nil if there is none.
func (w *world) leader() *process {
	var found *process
	for _, m := range w.machines {
		if m.p != nil && m.p.reign != nil && m.p.arb.node.Leading() && (found == nil || m.p.reign.term > found.reign.term) {
			found = m.p
		}
	}
	return found
}

func (w *world) someNode() *shared.Node {
	state := w.committed()
	if state == nil || len(state.Nodes) == 0 {
		return nil
	}
	return &state.Nodes[w.draw(len(state.Nodes))]
}

// set changes a setting to one of some values.
func (w *world) set(kind, key string, values ...string) bool {
	return w.command(kind, shared.Command{Set: &shared.Set{Settings: map[string]string{key: values[w.draw(len(values))]}}})
}

// command is what an operator has any node do: Control.Change. It counts as a fault when it was applied.
func (w *world) command(kind string, c shared.Command) bool {
	return w.propose(kind, c.Encode(), func(o outcome) {
		if r, ok := o.result.(shared.Result); ok && o.err == nil && r.Err() == nil && kind != "" {
			w.fault(kind)
		}
	})
}

func (w *world) propose(kind string, command []byte, done func(outcome)) bool {
	if m := w.someServing(); m != nil {
		w.tell("an operator at %v: %s %s", m, kind, command)
		m.p.arb.propose(2*second, command, core.Condition{}, done)
	}
	return false
}

// undo brings the settings back with which all copies can come together, again and again.
func (w *world) undo() {
	w.after(500*ms, w.undo) // also if they are so: a command may be committed late
	state := w.committed()
	if state == nil {
		return
	}
	if state.Locked {
		w.command("", shared.Command{Unlock: &shared.Lock{}})
		return
	}
	if s := &state.Settings; s.Copies != 0 || s.MinQuorum != 1 || s.Voters != 5 || !s.Balance {
		w.command("", shared.Command{Set: &shared.Set{Settings: map[string]string{"copies": "0", "min_quorum": "1", "voters": "5", "balance": "true"}}})
		return
	}
	for i := range state.Nodes {
		if n := &state.Nodes[i]; n.Drain {
			no := false
			w.command("", shared.Command{Node: &shared.NodeEdit{Number: n.Number, Drain: &no}})
		}
	}
}

// votes says whether the group counts on a machine's vote, as far as whoever leads knows.
func (w *world) votes(m *machine) bool {
	p := w.leader()
	return p == nil || slices.Contains(p.arb.node.Status().Voters, m.disk.raft)
}

// dismiss is an operator who ends the processes of nodes that were removed or replaced and do not know it, since they were cut off then, and
// removes nodes of which no machine is left.
func (w *world) dismiss() {
	w.after(5*second, w.dismiss)
	state := w.committed()
	if state == nil {
		return
	}
	for _, m := range w.machines {
		if m.p == nil || m.p.number == 0 {
			continue
		}
		switch n := state.Node(m.p.number); {
		case n == nil && w.votes(m):
		case n == nil:
			w.stats.Zombies++
			m.p.die("it was removed, and has not heard of it")
			m.leaveCluster()
			m.restart(ms)
		case n.Raft != m.disk.raft:
			w.stats.Zombies++
			m.p.die("another one has had its identifier, and it has not heard of it")
			m.restart(ms)
		}
	}
	for i := range state.Nodes {
		n := &state.Nodes[i]
		if !slices.ContainsFunc(w.machines, func(m *machine) bool { return m.id == n.ID }) {
			w.command("", shared.Command{Remove: &shared.Remove{Number: n.Number}})
			break
		}
	}
}
