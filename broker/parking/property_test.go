package parking

import (
	"slices"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/opencluster/oclocks/bucket/replicated"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type request struct {
	name  int
	zone  string
	bytes int
	trip  Trip
}

func (r *request) Trip() *Trip         { return &r.trip }
func (r *request) Load() (string, int) { return r.zone, r.bytes }

// standing is the naive model's: a request that stands somewhere.
type standing struct {
	*request
	place int
	until int64
}

// model is the rules for what stands, said without a count and without a cache.
type model struct {
	stands []standing
	ends   map[*request]int64 // when each is given up, from its first parking on
	closed bool
}

func (m *model) room(zone string) (left Limits) {
	left = small
	for _, s := range m.stands {
		if s.zone == zone {
			left.Requests--
			left.Bytes -= s.bytes
		}
	}
	return left
}

// leave takes those out for which it is over, as long as the ones before them at their place are out.
func (m *model) leave(place int, out func(s standing) bool) (gone []*request) {
	blocked := false
	m.stands = slices.DeleteFunc(m.stands, func(s standing) bool {
		if s.place != place || blocked || !out(s) {
			blocked = blocked || s.place == place
			return false
		}
		gone = append(gone, s.request)
		return true
	})
	return gone
}

var small = Limits{Requests: 3, Bytes: 100}

// Whatever happens: each request is in one place or has come out once, in order; a zone's room is its own and is given back;
// nobody is given up before its time, nor stands for twice as long; and a place is not looked at for nothing.
func TestLotAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lot := NewLot[string, *request](small)
		places := make([]Place[*request], 2)
		m := &model{ends: map[*request]int64{}}
		first := map[*request]int64{}
		var free []*request // may come, for the first time or again
		for i := range 12 {
			free = append(free, &request{name: i, zone: []string{"a", "b"}[i%2], bytes: rapid.IntRange(0, 60).Draw(t, "bytes"),
				trip: Trip{Hops: 1}})
		}
		now := int64(1)
		bucket := func() Bucket {
			turned := rapid.SampledFrom([]replicated.Turned{replicated.Taken, replicated.Elsewhere, replicated.Later}).Draw(t, "turned")
			return Bucket{Turned: turned, Gone: turned == replicated.Elsewhere && rapid.Bool().Draw(t, "gone")}
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				for i := range places {
					want := 0
					for _, s := range m.stands {
						if s.place == i {
							want++
						}
						if now >= first[s.request]+2*int64(Time) {
							t.Fatalf("%d stands for %d", s.name, now-first[s.request])
						}
					}
					if places[i].Len() != want {
						t.Fatalf("%d stand at %d, not %d", places[i].Len(), i, want)
					}
				}
			},
			"park": func(t *rapid.T) {
				if len(free) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(free)-1).Draw(t, "request")
				r, at := free[i], rapid.IntRange(0, 1).Draw(t, "place")
				if _, been := m.ends[r]; !been {
					m.ends[r], first[r] = now+int64(Time), now
				}
				left := m.room(r.zone)
				fits := !m.closed && now < m.ends[r] && left.Requests > 0 && left.Bytes >= r.bytes
				way := lot.Turn(now, &places[at], r, Bucket{Turned: replicated.Later})
				if fits != (way == Parked) || !fits && way != NoPrimary {
					t.Fatalf("way %d, its zone has room for %+v", way, left)
				}
				free = slices.Delete(free, i, i+1)
				if fits {
					m.stands = append(m.stands, standing{r, at, m.ends[r]})
				}
			},
			"look": func(t *rapid.T) {
				at, b := rapid.IntRange(0, 1).Draw(t, "place"), bucket()
				asked := !b.orphaned()
				want := m.leave(at, func(s standing) bool { return asked || s.until <= now })
				back, over := lot.Look(now, &places[at], b)
				if asked && (len(over) > 0 || !slices.Equal(back, want)) || !asked && (len(back) > 0 || !slices.Equal(over, want)) {
					t.Fatalf("back %d, over %d, want %d", len(back), len(over), len(want))
				}
				free = append(free, back...) // what comes again
				if clear(over); places[at].Len() == 0 {
					return
				}
				if next := places[at].Next(now, b.Turned); next <= now {
					t.Fatalf("it was looked at and is to be looked at again, at %d, now is %d", next, now)
				}
				if next := places[at].Next(now, replicated.Full); next != now {
					t.Fatalf("something else keeps them, and it is looked at at %d, now is %d", next, now)
				}
			},
			"time": func(t *rapid.T) { // as far as somebody wants, at the most: a place is looked at then
				until := now + rapid.Int64Range(1, int64(Time)).Draw(t, "time")
				for i := range places {
					if places[i].Len() > 0 {
						until = min(until, max(now, places[i].until))
					}
				}
				now = until
			},
			"close": func(t *rapid.T) {
				if rapid.IntRange(0, 9).Draw(t, "close") > 0 {
					t.Skip()
				}
				m.closed = true
				for i := range places {
					want := m.leave(i, func(standing) bool { return true })
					if over := lot.Close(&places[i]); !slices.Equal(over, want) {
						t.Fatalf("%d are told, not %d", len(over), len(want))
					}
				}
			},
		})
		for i := range places {
			lot.Close(&places[i])
		}
		if len(lot.loads) > 0 {
			t.Fatalf("nothing stands, and zones have %v", lot.loads)
		}
	})
}

// A request that is parked, and one that is given back, costs nothing but the place that it stands on.
func TestParkingAllocates(t *testing.T) {
	lot := NewLot[string, *request](DefaultLimits)
	var p Place[*request]
	r := &request{zone: "a", trip: Trip{Hops: 1}}
	lot.Turn(1, &p, r, Bucket{Turned: replicated.Later})
	allocs := testing.AllocsPerRun(100, func() {
		lot.Look(2, &p, Bucket{Turned: replicated.Taken})
		lot.Turn(2, &p, r, Bucket{Turned: replicated.Later})
	})
	if allocs > 1 {
		t.Errorf("%v allocations", allocs)
	}
}
