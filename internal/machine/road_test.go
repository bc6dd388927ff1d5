package machine

import (
	"testing"
	"time"
)

func least(int64) int64 { return 0 }

func TestRoadGoesToTheOthersFirst(t *testing.T) {
	var r Road
	hosts := []string{"a", "", "b", "c"}
	r.Arrived("a")
	r.Measured(map[string]time.Duration{"b": 5 * time.Millisecond, "c": time.Millisecond, "a": 0})
	for i, want := range []struct {
		index int
		rest  time.Duration
	}{{3, 0}, {2, 0}, {0, 0}, {0, MinRest}, {3, 0}, {2, 0}, {0, MinRest}} {
		if index, rest := r.Next(hosts, least); index != want.index || rest != want.rest {
			t.Fatalf("try %d: server %d after %v; want %d after %v", i, index, rest, want.index, want.rest)
		}
	}
	r.Arrived("c")
	if index, rest := r.Next(hosts, least); index != 0 || rest != 0 {
		t.Errorf("after the next connection broke: server %d after %v", index, rest)
	}
	if index, _ := new(Road).Next(nil, least); index != -1 {
		t.Errorf("server %d of none", index)
	}
}

func TestRoamGoesOnMoreAndMoreSlowly(t *testing.T) {
	var r Roam
	now := int64(time.Hour)
	look := func(cutOff bool, vacant time.Duration, servers int, after time.Duration, want bool, wantAgain time.Duration) {
		t.Helper()
		now += int64(after)
		if leave, again := r.Look(now, cutOff, int64(vacant), servers, least); leave != want || again != wantAgain {
			t.Fatalf("leave %v, again after %v; want %v, %v", leave, again, want, wantAgain)
		}
	}
	look(false, VacantLimit, 3, 0, false, 0)
	look(false, VacantLimit+1, 1, 0, false, 0) // there is no other
	look(true, 0, 1, 0, false, 0)
	look(false, VacantLimit+1, 3, 0, true, 0)
	look(true, 0, 3, time.Second-1, false, time.Second)
	look(false, VacantLimit+1, 3, 0, false, 0)
	look(true, 0, 3, 1, true, 0)
	look(true, 0, 3, 2*time.Second-1, false, 2*time.Second)
	for range 6 {
		look(false, VacantLimit+1, 3, roamLimit, true, 0)
	}
	look(true, 0, 3, roamLimit-1, false, roamLimit)
	look(false, 0, 3, 2, false, 0) // all is well for long enough
	look(true, 0, 3, 0, true, 0)
	look(true, 0, 3, 1, false, VacantLimit/2)
}
