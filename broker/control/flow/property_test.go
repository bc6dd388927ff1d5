package flow

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opencluster/oclocks/bucket/chain"
)

const modelBuckets = 3

// model is the control plane as naive as can be: an epoch for each bucket, and nodes that were removed. A command that was
// on its way stays on its way for ever: it may be applied at any time, more than once.
type model struct {
	epochs  [modelBuckets]uint64
	removed map[uint64]bool
	sent    [][]Ask
	never   map[string]bool // views of which a copy was told that they will never be
}

func key(q Ask) string { return fmt.Sprintf("%d %v", q.Bucket, q.View) }

func (m *model) apply(t *rapid.T, command []Ask) (out []Outcome) {
	for _, q := range command {
		taken := q.View.Epoch == m.epochs[q.Bucket]+1 && !m.removed[q.View.Primary().Node]
		if taken {
			if m.never[key(q)] {
				t.Fatalf("%s was refused and is committed", key(q))
			}
			m.epochs[q.Bucket]++
		}
		out = append(out, Outcome{q.Bucket, taken, m.epochs[q.Bucket]})
	}
	return out
}

// TestRefusedIsNeverCommitted has copies that ask, commands that get lost, come late or twice, and others who commit views,
// and demands that what was refused is never committed, and that every question comes to an end.
func TestRefusedIsNeverCommitted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{removed: map[uint64]bool{}, never: map[string]bool{}}
		asks := NewAsks(modelBuckets)
		var wants [modelBuckets]*Ask // what each copy has asked and has no answer to
		settle := func(outcomes []Outcome) {
			for _, q := range asks.Done(outcomes) {
				m.never[key(q)] = true
				if w := wants[q.Bucket]; w != nil && key(*w) == key(q) {
					wants[q.Bucket] = nil
				}
			}
		}
		install := func(b uint32) {
			asks.Committed(b, m.epochs[b])
			if w := wants[b]; w != nil && w.View.Epoch <= m.epochs[b] {
				wants[b] = nil
			}
		}
		bucket := rapid.Uint32Range(0, modelBuckets-1)
		t.Repeat(map[string]func(*rapid.T){
			"ask": func(t *rapid.T) {
				b := bucket.Draw(t, "bucket")
				if wants[b] == nil {
					install(b)
					node := rapid.Uint64Range(1, 4).Draw(t, "node")
					wants[b] = &Ask{b, chain.View{Epoch: m.epochs[b] + 1, Chain: []chain.Member{{Node: node}}, InSync: 1}}
				}
				if !asks.Add(*wants[b]) {
					t.Fatal("no room for one question about each bucket")
				}
			},
			"send": func(t *rapid.T) {
				if q := asks.Take(rapid.IntRange(1, 3).Draw(t, "views"), 9); len(q) > 0 {
					m.sent = append(m.sent, q)
				}
			},
			"answer": func(t *rapid.T) {
				if asks.InFlight() > 0 {
					settle(m.apply(t, m.sent[len(m.sent)-1]))
				}
			},
			"lose": func(*rapid.T) { asks.Unknown() },
			"late": func(t *rapid.T) {
				if len(m.sent) > 0 {
					m.apply(t, rapid.SampledFrom(m.sent).Draw(t, "command"))
				}
			},
			"other":   func(t *rapid.T) { m.epochs[bucket.Draw(t, "bucket")]++ },
			"remove":  func(t *rapid.T) { m.removed[rapid.Uint64Range(1, 4).Draw(t, "node")] = true },
			"install": func(t *rapid.T) { install(bucket.Draw(t, "bucket")) },
			"": func(t *rapid.T) {
				if n := asks.Waiting(); n > modelBuckets {
					t.Fatalf("%d questions wait", n)
				}
			},
		})
		asks.Unknown()
		for range 10 {
			q := asks.Take(2, 9)
			if len(q) == 0 {
				break
			}
			settle(m.apply(t, q))
		}
		for b := range uint32(modelBuckets) {
			if install(b); wants[b] != nil {
				t.Fatalf("%s has no answer", key(*wants[b]))
			}
		}
	})
}

// TestFeedGivesViewsBeforeTheirChange pushes states, some faster than they are taken, and demands what the copies rely on.
func TestFeedGivesViewsBeforeTheirChange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := NewFeed(4, func(s []chain.View) []chain.View { return s })
		var change, last uint64
		state := make([]chain.View, modelBuckets)
		installed := make([]uint64, modelBuckets)
		take := func() {
			for {
				views, next, ok := f.Next()
				if !ok {
					return
				}
				for _, v := range views {
					if v.View.Epoch <= installed[v.Bucket] {
						t.Fatalf("bucket %d: %v after epoch %d", v.Bucket, v.View, installed[v.Bucket])
					}
					installed[v.Bucket] = v.View.Epoch
				}
				if next.Change <= last {
					t.Fatalf("change %d after %d", next.Change, last)
				}
				last = next.Change
				for b, v := range next.State {
					if installed[b] != v.Epoch {
						t.Fatalf("change %d has epoch %d of bucket %d, installed is %d", last, v.Epoch, b, installed[b])
					}
				}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"push": func(t *rapid.T) {
				change += rapid.Uint64Range(1, 3).Draw(t, "step")
				if rapid.Bool().Draw(t, "views") {
					state = append([]chain.View(nil), state...)
					state[rapid.IntRange(0, modelBuckets-1).Draw(t, "bucket")].Epoch++
				}
				f.Push(change, state)
			},
			"open": func(*rapid.T) { f.Open() },
			"take": func(*rapid.T) { take() },
		})
		f.Open()
		if take(); last != change {
			t.Fatalf("the newest change is %d, told was %d", change, last)
		}
	})
}

// TestOnlyAnOldDiskIsRefused has a node begin, crash, register and miss answers, and copies of its disk made at any time. Its
// own disk is never refused; a copy is as soon as a start was registered since that it does not know. What nodes that are
// behind say proves nothing wrong either way.
func TestOnlyAnOldDiskIsRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type registration struct{ start, change uint64 }
		type copied struct {
			disk Starts
			at   uint64 // starts before
		}
		var disk Starts
		var start, change uint64
		history := []registration{{}}
		last := func() registration { return history[len(history)-1] }
		var copies []copied
		begin := func() {
			start++
			disk = disk.Begin(start)
		}
		begin()
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(*rapid.T) { begin() },
			"register": func(t *rapid.T) {
				change += rapid.Uint64Range(1, 3).Draw(t, "step")
				if before := disk.Before(start); last().start != 0 && last().start != start && !slices.Contains(before, last().start) {
					t.Fatalf("start %d is refused: %d is registered, and the disk tells %v", start, last().start, before)
				}
				history = append(history, registration{start, change})
				if rapid.Bool().Draw(t, "heard") {
					disk = disk.Registered(start, change)
					begin() // a process is registered once
				}
			},
			"copy": func(*rapid.T) { copies = append(copies, copied{disk, start}) },
			"": func(t *rapid.T) {
				for _, r := range history {
					if disk.Older(r.start, r.change) {
						t.Fatalf("%+v says that %+v is old", r, disk)
					}
				}
				for _, c := range copies {
					old := last().start > c.at
					if got := c.disk.Older(last().start, last().change); got != old {
						t.Fatalf("the copy %+v, made after start %d: older: %v, last is %+v", c.disk, c.at, got, last())
					}
					told := slices.Contains(c.disk.Begin(start+1).Before(start+1), last().start)
					if last().start != 0 && told == old {
						t.Fatalf("the copy %+v, made after start %d, knows of start %d: %v", c.disk, c.at, last().start, told)
					}
				}
			},
		})
	})
}
