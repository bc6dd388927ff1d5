package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/opencluster/oclocks/bench/rig"
	"github.com/opencluster/oclocks/client"
)

const (
	strainLocks = 40 // names that the workers share
	maxProblems = 5  // that are told
)

// strain is workers that lock and unlock without a break, and the record of it: who was granted what and when.
type strain struct {
	cancel  context.CancelFunc
	workers sync.WaitGroup
	failed  atomic.Int64 // requests that the client did not hide
	lost    atomic.Int64 // claims

	mu    sync.Mutex
	took  []taken
	texts []string
}

// taken is one lock that was taken.
type taken struct {
	name             string
	token            uint64
	asked, got, gave time.Time // gave: before the release was sent
}

// startStrain starts the workers, each with a Go client of its own, on all nodes in turn.
func startStrain(ctx context.Context, d *rig.Daemons) (*strain, error) {
	ctx, cancel := context.WithCancel(ctx)
	s := &strain{cancel: cancel}
	for i := range failoverWorkers {
		c, err := client.Connect(ctx, d.URLs(i%len(d.Nodes)))
		if err != nil {
			return nil, errors.Join(err, s.stop())
		}
		s.workers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				s.once(ctx, c, fmt.Sprint("strain/", (i/2*7+n)%strainLocks)) // two meet at each lock now and then
			}
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), rig.Patience)
			defer cancel()
			if err := c.Close(closing); err != nil {
				s.problem("close: %v", err)
			}
		})
	}
	return s, nil
}

func (s *strain) once(ctx context.Context, c *client.Client, name string) {
	asking, cancel := context.WithTimeout(ctx, rig.Patience)
	defer cancel()
	t := taken{name: name, asked: time.Now()}
	claim, err := c.Mutex(name).Lock(asking)
	if err != nil {
		if ctx.Err() == nil {
			s.failed.Add(1)
			s.problem("lock %s: %v", name, err)
		}
		return
	}
	t.got, t.token = time.Now(), claim.Token()
	if claim.State() == client.Held {
		t.gave = time.Now()
	}
	giving, cancel := context.WithTimeout(context.WithoutCancel(ctx), rig.Patience)
	defer cancel()
	err = claim.Release(giving)
	switch {
	case errors.Is(err, client.ErrLost):
		s.lost.Add(1)
		s.problem("release %s: %v", name, err)
	case err != nil:
		s.failed.Add(1)
		s.problem("release %s: %v", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.took = append(s.took, t)
}

func (s *strain) problem(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.texts) < maxProblems {
		s.texts = append(s.texts, time.Now().Format("15:04:05.000 ")+fmt.Sprintf(format, args...))
	}
}

func (s *strain) problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.texts
}

// until lets the workers work until a moment, and then until half of the locks were taken once more.
func (s *strain) until(ctx context.Context, at time.Time) error {
	timer := time.NewTimer(time.Until(at))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	begin := time.Now()
	return rig.Await(ctx, func() (bool, error) {
		if time.Since(begin) > rig.Patience {
			return false, fmt.Errorf("the workers are stuck: %v", s.problems())
		}
		return s.namesSince(begin) >= strainLocks/2, nil
	})
}

// namesSince counts the locks that were asked for and taken since a moment.
func (s *strain) namesSince(begin time.Time) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make(map[string]bool)
	for i := len(s.took) - 1; i >= 0 && s.took[i].asked.After(begin); i-- {
		names[s.took[i].name] = true
	}
	return len(names)
}

// between gives the longest time without any grant, and the longest that anybody waited for one, of the grants of a time.
// It judges them, and forgets those before.
func (s *strain) between(from, to time.Time) (gap, slowest time.Duration) {
	s.mu.Lock()
	all := s.took
	s.took = nil
	s.mu.Unlock()
	s.judge(all)
	slices.SortFunc(all, func(a, b taken) int { return a.got.Compare(b.got) })
	last := from
	for i := range all {
		if t := &all[i]; t.got.After(from) && t.got.Before(to) {
			gap, slowest = max(gap, t.got.Sub(last)), max(slowest, t.got.Sub(t.asked))
			last = t.got
		}
	}
	return max(gap, to.Sub(last)), slowest
}

// judge looks for two holders of one lock at a time and for tokens that do not rise.
func (s *strain) judge(all []taken) {
	slices.SortFunc(all, func(a, b taken) int { return cmp.Or(cmp.Compare(a.name, b.name), a.got.Compare(b.got)) })
	for i := 1; i < len(all); i++ {
		a, b := &all[i-1], &all[i]
		if a.name == b.name && (b.got.Before(a.gave) || b.token <= a.token) {
			s.failed.Add(1)
			s.problem("%s: token %d from %v to %v, then token %d from %v", a.name, a.token, a.got, a.gave, b.token, b.got)
		}
	}
}

// stop ends the workers.
func (s *strain) stop() error {
	s.cancel()
	s.workers.Wait()
	return nil
}
