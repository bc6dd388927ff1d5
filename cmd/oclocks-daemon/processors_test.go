package main

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func TestProcessors(t *testing.T) {
	always := func(used float64) func(int) float64 { return func(int) float64 { return used } }
	var set []int
	p := &processors{most: 6, now: 6, set: func(n int) { set = append(set, n) }}
	for _, c := range []struct {
		what  string
		looks int
		used  func(look int) float64 // processors
		want  []int
	}{
		{"all of them", 100, always(5), nil},
		{"a calm second", calmLooks, always(0.1), []int{1}},
		{"load that one carries", 1000, always(0.7), nil},
		{"the collector runs now and then", 1000, func(look int) float64 { return []float64{0.5, 0.5, 1}[look%3] }, nil},
		{"as much as it gets", 100, func(int) float64 { return float64(p.now) }, []int{2, 4, 6}},
		{"half of it", 1000, always(2.9), []int{5}},
		{"more for a moment", busyLooks - 1, always(4.5), nil},
		{"nothing", 1000, always(0), []int{1}},
	} {
		set = nil
		p.choose(p.now)
		for look := range c.looks {
			p.looked(time.Duration(c.used(look)*float64(lookEvery)), lookEvery)
		}
		if !slices.Equal(set, c.want) {
			t.Errorf("%s: %d were set, expected %d", c.what, set, c.want)
		}
	}
}

// What is used is the difference of two looks, whenever they are; and where nobody tells it any more there are all processors.
func TestProcessorsWatch(t *testing.T) {
	type answer struct {
		used time.Duration
		err  error
	}
	var (
		set   []int
		p     = &processors{most: 4, now: 4, set: func(n int) { set = append(set, n) }}
		now   = time.Unix(1000, 0)
		used  = time.Hour
		ticks = make(chan time.Time, calmLooks+1)
		asked = make(chan answer, calmLooks+2)
	)
	asked <- answer{used: used}
	for range calmLooks {
		now, used = now.Add(3*time.Second), used+4*time.Second
		ticks <- now
		asked <- answer{used: used}
	}
	ticks <- now
	asked <- answer{err: errors.New("not any more")}
	p.watch(time.Unix(1000, 0), ticks, func() (time.Duration, error) {
		a := <-asked
		return a.used, a.err
	})
	if want := []int{3, 4}; !slices.Equal(set, want) {
		t.Errorf("%d were set, expected %d", set, want)
	}
}
