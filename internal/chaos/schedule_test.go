package chaos

import (
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"
)

func TestScheduleIsTheSeedsAlone(t *testing.T) {
	kinds := make(map[Kind]bool)
	for seed := range uint64(200) {
		s := newSchedule(seed, 3*time.Minute)
		if !reflect.DeepEqual(s, newSchedule(seed, 3*time.Minute)) {
			t.Fatalf("seed %d has two schedules", seed)
		}
		if s.Nodes < 3 || s.Nodes > 5 {
			t.Errorf("seed %d: %d nodes", seed, s.Nodes)
		}
		for _, round := range s.Rounds {
			if !slices.IsSortedFunc(round.Steps, func(a, b Step) int { return int(a.At - b.At) }) {
				t.Errorf("seed %d: not in the order of time: %v", seed, round.Steps)
			}
			for _, step := range round.Steps {
				kinds[step.Kind] = true
				nodes := step.Kind != ClientKill && step.Kind != ClientStop && step.Kind != ClientAway && step.Kind != ClientCut &&
					step.Kind != ClientDelay && step.Kind != ClientGarb
				if step.At >= round.Length || step.For > round.Length || nodes && (step.A > s.Nodes || step.B > s.Nodes) || nodes && step.A != 0 && step.A == step.B {
					t.Errorf("seed %d: %s", seed, step)
				}
			}
		}
	}
	for _, kind := range Kinds() {
		if !kinds[kind] {
			t.Errorf("no schedule has %s", kind)
		}
	}
}

func TestScheduleIsReadAsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "schedule.json")
	s := newSchedule(5, time.Minute)
	if err := s.write(path); err != nil {
		t.Fatal(err)
	}
	if again, err := readSchedule(path); err != nil || !reflect.DeepEqual(again, s) {
		t.Errorf("%v %+v", err, again)
	}
	if err := (&Schedule{Nodes: 2}).write(path); err != nil {
		t.Fatal(err)
	}
	if _, err := readSchedule(path); err == nil {
		t.Error("two nodes are no cluster for this")
	}
}
