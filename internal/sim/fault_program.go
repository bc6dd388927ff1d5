package sim

import (
	"fmt"

	"github.com/opencluster/oclocks/conf/shared"
)

// laterLevel is that of the next program, which runs beside the first one here: it differs in nothing but that it knows the level.
const laterLevel = 2

// program is the level of the one that is installed on the machine.
func (m *machine) program() uint32 { return max(1, m.level) }

// install puts another program on a machine, and starts that.
func (w *world) install(m *machine, level uint32) bool {
	if m.p == nil || m.program() == level {
		return false
	}
	w.tell("%v gets a program of level %d", m, level)
	w.stop(m, "another program is installed")
	m.level = level
	m.restart(w.between(10*ms, 500*ms))
	return true
}

// tooOld is a program that does not go on, since it does not know what the others do. Whoever looks after it installs another one.
func (p *process) tooOld(err error) {
	p.w.fault("program too old for its cluster")
	p.m.level = laterLevel
	p.fail(err)
}

// laterCommand is one that programs of level 1 would take for something else: it takes effect nowhere, or on all nodes.
func (w *world) laterCommand() bool {
	balance := w.draw(2) == 0
	text := fmt.Appendf(nil, `{"op":"set","needs":%d,"set":{"settings":{"balance":"%t"}}}`, laterLevel, balance)
	return w.propose("", text, func(o outcome) {
		r, ok := o.result.(shared.Result)
		switch {
		case !ok:
		case r.Kind == "level":
			w.fault("command of a later level refused")
		case r.Err() == nil && w.committed().AppliedBy() < laterLevel:
			w.fail("a command for level %d is taken at level %d", laterLevel, w.committed().AppliedBy())
		case r.Err() == nil:
			w.fault("command of a later level")
		}
	})
}
