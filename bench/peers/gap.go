package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/opencluster/oclocks/bench/rig"
)

const (
	strainWorkers = 16
	calm          = time.Second      // before the end of the node
	aftermath     = 12 * time.Second // in which it must go on, or it has stopped
	goesOn        = 2 * time.Second  // of grants, before it counts as going on
	attempt       = time.Second      // for which a worker waits for one answer
)

// strain is workers who lock and unlock without a break; it notes when each was granted anything.
type strain struct {
	mu     sync.Mutex
	grants [strainWorkers][]time.Time
}

func (s *strain) granted(worker int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grants[worker] = append(s.grants[worker], time.Now())
}

// between is the longest time for which nobody was granted anything, and the longest for one of the workers, of a stretch of time.
func (s *strain) between(from, to time.Time) (nobody, one time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []time.Time
	for _, own := range s.grants {
		all = append(all, own...)
		one = max(one, pause(own, from, to))
	}
	slices.SortFunc(all, time.Time.Compare)
	return pause(all, from, to), one
}

// pause is the longest time between two of the sorted times.
func pause(sorted []time.Time, from, to time.Time) (longest time.Duration) {
	last := from
	for _, at := range sorted {
		if at.After(from) && at.Before(to) {
			longest, last = max(longest, at.Sub(last)), at
		}
	}
	return max(longest, to.Sub(last))
}

// endOfLeader kills what leads and looks for how long nobody is granted anything.
func endOfLeader(ctx context.Context, s service, f figures) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	all := make([]worker, strainWorkers)
	if err := together(strainWorkers, func(i int) (err error) { all[i], err = s.Worker(ctx, i); return err }); err != nil {
		return err
	}
	st := &strain{}
	for i, w := range all {
		go st.work(ctx, w, i) // those that a client does not let go of end with this program
	}
	if err := rest(ctx, calm); err != nil {
		return err
	}
	victim, err := s.Victim(ctx)
	if err != nil {
		return fmt.Errorf("who leads: %w", err)
	}
	killed := time.Now()
	if nobody, _ := st.between(killed.Add(-calm/2), killed); nobody >= calm/2 {
		return fmt.Errorf("nobody was granted anything before the end of the node")
	}
	victim.Kill()
	until := killed.Add(aftermath)
	err = rig.Await(ctx, func() (bool, error) {
		now := time.Now()
		_, one := st.between(now.Add(-goesOn), now)
		return now.After(until) || now.Sub(killed) > 2*goesOn && one < goesOn/4, nil
	})
	if err != nil {
		return err
	}
	now := time.Now()
	nobody, one := st.between(killed, now)
	if quiet, _ := st.between(now.Add(-goesOn), now); quiet >= goesOn {
		f[neverBack] = 1
		return nil
	}
	f[gap], f[gapOfOne] = millis(nobody), millis(one)
	return nil
}

// work goes on to another lock when one was not got or not given back in time.
func (s *strain) work(ctx context.Context, w worker, i int) {
	for n := 0; ctx.Err() == nil; {
		if err := s.once(ctx, w, i, fmt.Sprintf("strain/%d/%d", i, n)); err != nil {
			n++
			if rest(ctx, 10*time.Millisecond) != nil {
				return
			}
		}
	}
}

func (s *strain) once(ctx context.Context, w worker, i int, name string) error {
	ctx, cancel := context.WithTimeout(ctx, attempt)
	defer cancel()
	if err := w.Lock(ctx, name); err != nil {
		return err
	}
	s.granted(i)
	giving, cancel := context.WithTimeout(context.WithoutCancel(ctx), attempt)
	defer cancel()
	return w.Unlock(giving)
}
