package broker

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opencluster/oclocks/subjects"
)

// Against a model: within a zone the order is kept, and while several zones have tasks no zone is served twice before
// each of the others was served once.
func TestQueueIsFairBetweenZonesAndFIFOWithin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := newQueue()
		zones := []*zone{nil, {name: "a"}, {name: "b"}, {name: "c"}}
		waiting := make(map[*zone][]*task)
		t.Repeat(map[string]func(*rapid.T){
			"put": func(t *rapid.T) {
				z := rapid.SampledFrom(zones).Draw(t, "zone")
				task := &task{zone: z}
				if !q.put(task) {
					t.Fatal("refused a task below the limit")
				}
				waiting[z] = append(waiting[z], task)
			},
			"give back": func(t *rapid.T) {
				tasks := slices.DeleteFunc(q.take(nil, rapid.IntRange(1, 5).Draw(t, "some")), func(one *task) bool {
					if one.zone == nil {
						waiting[nil] = waiting[nil][1:]
					}
					return one.zone == nil
				})
				if gone := q.giveBack(tasks); len(gone) != 0 {
					t.Fatal("their zones are there")
				}
			},
			"take": func(t *rapid.T) {
				limit := rapid.IntRange(1, 5).Draw(t, "limit")
				total := 0
				for _, w := range waiting {
					total += len(w)
				}
				got := q.take(nil, limit)
				if len(got) != min(limit, total) {
					t.Fatalf("took %d of %d, limit %d", len(got), total, limit)
				}
				served := make(map[*zone]bool)
				for _, task := range got {
					if waiting[task.zone][0] != task {
						t.Fatal("out of order within a zone")
					}
					if task.zone == nil { // the daemon's own tasks come first
						waiting[nil] = waiting[nil][1:]
						continue
					}
					if served[task.zone] {
						for z, w := range waiting {
							if z != nil && len(w) > 0 && !served[z] {
								t.Fatal("a zone was served twice while another waited")
							}
						}
						clear(served)
					}
					waiting[task.zone] = waiting[task.zone][1:]
					served[task.zone] = true
				}
			},
		})
	})
}

func TestQueueRefusesBeyondItsLimit(t *testing.T) {
	q := newQueue()
	z, other := &zone{name: "flood"}, &zone{name: "calm"}
	for range maxPending {
		if !q.put(&task{zone: z}) {
			t.Fatal("refused below the limit")
		}
	}
	if q.put(&task{zone: z}) {
		t.Error("took more than the limit of one zone")
	}
	if !q.put(&task{zone: other}) || !q.put(&task{}) {
		t.Error("the flood of one zone refused another zone, or the daemon")
	}
	if got := q.take(nil, 3); got[1].zone != other && got[2].zone != other {
		t.Error("the calm zone waits behind the flood")
	}
}

// Keep-alives that come together are as many requests as they are.
func TestQueueCountsKeepAlives(t *testing.T) {
	q := newQueue()
	z := &zone{name: "flood"}
	keep := func() *task {
		return &task{kind: taskKeep, zone: z, keeping: &keeping{all: make([]keepAlive, subjects.MaxBundle)}}
	}
	for range maxPending / subjects.MaxBundle {
		if !q.put(keep()) {
			t.Fatal("refused below the limit")
		}
	}
	if q.put(keep()) || q.put(&task{zone: z}) {
		t.Error("took more than the limit of one zone")
	}
	got := q.take(nil, batchTasks)
	if len(got) != batchTasks/subjects.MaxBundle {
		t.Errorf("a batch of %d times %d keep-alives", len(got), subjects.MaxBundle)
	}
	for range batchTasks {
		if !q.put(&task{zone: z}) {
			t.Fatal("refused below the limit")
		}
	}
	if q.put(&task{zone: z}) {
		t.Error("took more than the limit of one zone")
	}
}

func TestQueueForgetsAZone(t *testing.T) {
	q := newQueue()
	z := &zone{name: "gone"}
	q.put(&task{zone: z})
	q.drop(z)
	if got := q.take(nil, 1); len(got) != 0 || !q.empty() {
		t.Errorf("a removed zone still has %d tasks", len(got))
	}
}

// Lists look at so much that each ends its batch: what another zone asks meanwhile waits for one of them at the most.
func TestAListEndsItsBatch(t *testing.T) {
	q := newQueue()
	z, other := &zone{name: "lists"}, &zone{name: "calm"}
	list := func() *task { return &task{kind: taskEach, zone: z, req: subjects.Request{Op: subjects.OpList}} }
	for range 3 {
		q.put(list())
	}
	if got := q.take(nil, 256); len(got) != 1 {
		t.Fatalf("a batch of %d lists", len(got))
	}
	q.put(&task{zone: other})
	q.take(nil, 256)
	if got := q.take(nil, 256); len(got) == 0 || got[0].zone != other {
		t.Error("the other zone waits for more than one list")
	}
}

// However many zones have requests, what the daemon itself has to do comes with the next batch, in its order.
func TestTheDaemonsOwnTasksComeFirst(t *testing.T) {
	q := newQueue()
	for range 300 {
		z := &zone{}
		for range 2 {
			q.put(&task{kind: taskOne, zone: z})
		}
	}
	var own []*task
	for range 20 {
		own = append(own, &task{kind: taskCall})
		q.put(own[len(own)-1])
	}
	batch := q.take(nil, 256)
	if len(batch) != 256 || !slices.Equal(batch[:20], own) {
		t.Fatalf("%d tasks, the first one is of kind %d", len(batch), batch[0].kind)
	}
	for range 300 { // and they do not keep the zones from theirs
		q.put(&task{kind: taskCall})
	}
	zones := 0
	for _, one := range q.take(nil, 256) {
		if one.zone != nil {
			zones++
		}
	}
	if zones < 120 {
		t.Fatalf("%d of a batch are the zones'", zones)
	}
	for total := 0; ; {
		batch = q.take(batch[:0], 256)
		if total += len(batch); len(batch) == 0 {
			if !q.empty() || total != 620+300-512 {
				t.Fatalf("%d tasks more", total)
			}
			return
		}
	}
}
