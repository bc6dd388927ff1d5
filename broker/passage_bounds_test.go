package broker

import (
	"testing"

	"github.com/opencluster/oclocks/broker/parking"
)

// However much one zone passes on, there is room for others, and what is answered makes room again.
func TestAZoneLeavesRoomInAPassage(t *testing.T) {
	for name, size := range map[string]int{"many": 100, "large": maxPassedSize} {
		t.Run(name, func(t *testing.T) {
			p := newPassage(nil, nil)
			fill := func(z *zone) (n int) {
				for ; ; n++ {
					asked := &task{zone: z, size: size}
					if !p.fits(asked) {
						return n
					}
					p.last++
					p.add(p.last, asked)
				}
			}
			loud, other, third := new(zone), new(zone), new(zone)
			if n := fill(loud); n != min(maxPassed, maxPassedBytes/size)/2 {
				t.Errorf("a zone by itself has %d", n)
			}
			many := len(p.pending)
			if n := fill(other); n < many/3 {
				t.Errorf("another zone has room for %d beside %d", n, many)
			}
			if n := fill(third); n < many/6 {
				t.Errorf("a third zone has room for %d beside %d", n, many)
			}
			if p.bytes > maxPassedBytes || len(p.pending) > maxPassed {
				t.Errorf("%d requests, %d bytes", len(p.pending), p.bytes)
			}
			for number := uint64(1); number <= p.last; number++ {
				if p.remove(number) == nil || p.remove(number) != nil {
					t.Fatalf("%d is not pending once", number)
				}
			}
			if p.bytes != 0 || len(p.loads) != 0 || fill(third) != many {
				t.Errorf("nothing is pending: %d bytes, loads %v", p.bytes, p.loads)
			}
			p.end()
			if p.bytes != 0 || len(p.loads) != 0 {
				t.Errorf("it is over: %d bytes, loads %v", p.bytes, p.loads)
			}
		})
	}
	if p := newPassage(nil, nil); p.fits(&task{zone: new(zone), size: maxPassedSize + 1}) {
		t.Error("a large request is passed on")
	}
}

// What nobody has is bounded for each zone.
func TestWhatIsAsideIsBounded(t *testing.T) {
	limits := parking.DefaultLimits
	for _, size := range []int{1, 64 << 10} {
		var a aside
		n := 0
		for one := (&task{size: size}); a.put(one); n++ {
		}
		if n != min(limits.Requests, limits.Bytes/size) {
			t.Errorf("%d requests of %d bytes are put aside", n, size)
		}
		a.take(&task{size: size})
		if !a.put(&task{size: size}) || a.put(&task{size: size}) {
			t.Error("one that is taken makes room for another one, not for two")
		}
	}
}

// What was passed on over NATS is kept up to a bound, in bytes too, and what is swept makes room.
func TestWhatIsKeptOfRequestsPassedOnIsBounded(t *testing.T) {
	for _, size := range []int{1, 64 << 10} {
		o := outward{sweeps: true} // this test does
		fill := func() (n int) {
			for {
				if _, kept := o.put(&task{size: size}); !kept {
					return n
				}
				n++
			}
		}
		want := min(maxOutward, maxOutwardBytes/size)
		if n := fill(); n != want {
			t.Errorf("%d of %d bytes are kept, not %d", n, size, want)
		}
		if o.take(1) == nil || o.take(1) != nil || fill() != 1 {
			t.Error("one that is taken does not make room for one")
		}
		o.sweep()
		if n := fill(); n != want {
			t.Errorf("%d of %d bytes are kept after a sweep, not %d", n, size, want)
		}
		if o.take(2) == nil || fill() != 0 {
			t.Error("an old one makes room for a young one")
		}
		o.sweep()
		o.sweep()
		if len(o.old)+len(o.young)+o.bytes != 0 || o.sweeps {
			t.Errorf("%d old, %d young, %d bytes", len(o.old), len(o.young), o.bytes)
		}
	}
}
