package core

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestScripts runs scripts that drive a group; what the machines tell is the expectation (-rewrite). The first line is "new".
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/golden", func(t *testing.T, path string) {
		var w *world
		var out strings.Builder
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out.Reset()
			if d.Cmd == "new" {
				machines := 3
				d.MaybeScanArgs(t, "machines", &machines)
				w = newWorld(1, testConfig(), machines)
				w.trace = func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
				for _, m := range w.machines {
					for _, e := range m.events {
						w.trace("%d: %s", m.id, describeEvent(e))
					}
				}
				return out.String()
			}
			if err := script(t, w, d); err != nil {
				w.trace("error: %v", err)
			}
			for _, wrong := range w.wrong {
				w.trace("WRONG: %s", wrong)
			}
			return out.String()
		})
	})
}

func script(t *testing.T, w *world, d *datadriven.TestData) error {
	id, to, n := 1, 0, 0
	var text string
	d.MaybeScanArgs(t, "id", &id)
	d.MaybeScanArgs(t, "to", &to)
	d.MaybeScanArgs(t, "ms", &n)
	d.MaybeScanArgs(t, "text", &text)
	m := w.find(uint64(id))
	switch d.Cmd {
	case "run":
		w.run(int64(n) * ms)
	case "propose":
		return w.propose(m, text, Condition{})
	case "take":
		return w.take(m, uint64(to))
	case "add":
		return w.member(m, AddLearner, uint64(to))
	case "promote":
		return w.member(m, Promote, uint64(to))
	case "remove":
		return w.member(m, Remove, uint64(to))
	case "transfer":
		err := m.node.Transfer(uint64(to))
		w.carryOut(m)
		return err
	case "crash":
		w.crash(m)
		for _, o := range w.machines {
			if o != m {
				o.gone = append(o.gone, m.id)
			}
		}
	case "start":
		w.start(m)
	case "isolate":
		for _, o := range w.machines {
			w.setCut(m.id, o.id, true)
		}
	case "heal":
		clear(w.cut)
	case "status":
		w.trace("%+v", m.node.Status())
	default:
		d.Fatalf(t, "unknown command")
	}
	return nil
}
