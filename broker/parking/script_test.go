package parking

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/opencluster/oclocks/bucket/replicated"
)

// The files in testdata/golden are scripts. Times are milliseconds. A zone has room for two requests and 100 bytes. What a request
// is called begins with its zone's letter.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/golden", func(t *testing.T, path string) {
		w := &world{lot: NewLot[string, *request](Limits{Requests: 2, Bytes: 100}), known: map[string]*request{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			w.t, w.out = t, &strings.Builder{}
			for line := range strings.SplitSeq(d.Input, "\n") {
				if f := strings.Fields(line); len(f) > 0 {
					w.do(f)
				}
			}
			return w.out.String()
		})
	})
}

type world struct {
	t      *testing.T
	out    *strings.Builder
	lot    *Lot[string, *request]
	places [2]Place[*request]
	known  map[string]*request
}

var turns = map[string]Bucket{
	"taken": {Turned: replicated.Taken}, "elsewhere": {Turned: replicated.Elsewhere}, "gone": {Turned: replicated.Elsewhere, Gone: true},
	"later": {Turned: replicated.Later}, "misplaced": {Turned: replicated.Misplaced}, "full": {Turned: replicated.Full},
}

var ways = map[Way]string{
	Parked: "parked", Forward: "forward", Linger: "linger", Again: "again", Moved: "moved", Misplaced: "misplaced", NoPrimary: "no primary",
	Overloaded: "overloaded",
}

func (w *world) num(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *world) bucket(s string) Bucket {
	b, ok := turns[s]
	if !ok {
		w.t.Fatalf("unknown: %s", s)
	}
	return b
}

// do carries out one of:
//
//	turn NOW PLACE NAME TURNED [HOPS [BYTES]]   HOPS: of a request that was not seen before; 1 if absent
//	look NOW PLACE TURNED
//	close PLACE
func (w *world) do(f []string) {
	const ms = 1_000_000
	names := func(of []*request) string {
		var s []string
		for _, r := range of {
			for name, known := range w.known { // order: one has it
				if known == r {
					s = append(s, name)
				}
			}
		}
		return strings.Join(s, " ")
	}
	switch f[0] {
	case "turn":
		r := w.known[f[3]]
		if r == nil {
			r = &request{zone: f[3][:1], trip: Trip{Hops: 1}}
			w.known[f[3]] = r
			if len(f) > 5 {
				r.trip.Hops = w.num(f[5])
			}
			if len(f) > 6 {
				r.bytes = w.num(f[6])
			}
		}
		fmt.Fprintf(w.out, "%s: %s\n", f[3], ways[w.lot.Turn(int64(w.num(f[1]))*ms, &w.places[w.num(f[2])], r, w.bucket(f[4]))])
	case "look":
		now, p, b := int64(w.num(f[1]))*ms, &w.places[w.num(f[2])], w.bucket(f[3])
		due := "-"
		if p.Len() > 0 {
			due = strconv.FormatInt(p.Next(now, b.Turned)/ms, 10)
		}
		back, over := w.lot.Look(now, p, b)
		fmt.Fprintf(w.out, "due %s: back [%s], over [%s], %d left", due, names(back), names(over), p.Len())
		if p.Len() > 0 {
			fmt.Fprintf(w.out, ", next %d", p.Next(now, b.Turned)/ms)
		}
		fmt.Fprintln(w.out)
	case "close":
		fmt.Fprintf(w.out, "over [%s]\n", names(w.lot.Close(&w.places[w.num(f[1])])))
	default:
		w.t.Fatalf("unknown: %v", f)
	}
}
