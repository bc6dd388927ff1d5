package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/opencluster/oclocks/internal/e2e/daemons"
)

// effect is a fault while it lasts: end takes it back and says whether it had an effect at all.
type effect struct {
	end func() (happened bool)
}

// done is the effect of a fault that is over at once.
func done(happened bool) *effect { return &effect{func() bool { return happened }} }

// step carries out one fault: waits for its time, begins it, waits, takes it back. It counts if it had an effect.
func (r *run) step(ctx context.Context, s *Step, begin time.Time) {
	if !sleep(ctx, time.Until(begin.Add(s.At))) {
		return
	}
	r.opening.Lock()
	r.mu.Lock()
	r.active[s] = true
	r.planned[s.Kind]++
	r.mu.Unlock()
	r.note("begin %s", s)
	e, err := r.begin(ctx, s)
	r.opening.Unlock()
	happened := false
	if err == nil {
		sleep(ctx, s.For)
		happened = e.end()
	}
	if happened {
		r.happened(s.Kind)
	}
	r.mu.Lock()
	delete(r.active, s)
	r.mu.Unlock()
	r.note("end %s: it happened: %t %v", s, happened, errText(err))
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// happened counts a fault that really happened.
func (r *run) happened(kind Kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults[kind]++
}

// sleep waits; false: ctx ended before.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// errNoEffect says that a fault cannot have an effect now.
var errNoEffect = errors.New("it has no effect now")

// begin begins a fault.
func (r *run) begin(ctx context.Context, s *Step) (*effect, error) {
	switch s.Kind {
	case Kill:
		return r.kill(r.member(s.A)), nil
	case KillTwo:
		return r.kill(r.member(s.A), r.member(s.B)), nil
	case KillAll:
		return r.kill(r.members()...), nil
	case Restart:
		n := r.member(s.A)
		return &effect{func() bool { return r.restart(ctx, n) }}, nil
	case Rolling:
		all := r.members()
		return &effect{func() bool { return r.restart(ctx, all...) }}, nil
	case Stop:
		return r.stop(r.member(s.A)), nil
	case StopAll:
		return r.stop(r.members()...), nil
	case Flicker:
		return r.flicker(r.member(s.A)), nil
	case CutOneWay, CutTwoWays, Isolate, Split, Deaf, ClientCut, ClientAway:
		return r.cut(r.ways(s))
	case LinkCut, LinkOneWay:
		return r.cut(r.ways(s))
	case Delay, Corrupt, Reset, LinkDelay, LinkCorrupt, LinkReset, ClientDelay, ClientGarb:
		return r.interpose(s)
	case DiskFull:
		return r.fill(r.member(s.A))
	case WallClock:
		return r.shift(ctx, r.member(s.A), s.N)
	case LoseDisk:
		return r.loseDisk(ctx, r.member(s.A))
	case ClientKill:
		return r.killClient(r.workers[s.A-1])
	case ClientStop:
		return r.stopClient(r.workers[s.A-1]), nil
	}
	return r.operate(ctx, s)
}

func (r *run) kill(nodes ...*node) *effect {
	alive := 0
	for _, n := range nodes {
		if n.down() {
			alive++
		}
	}
	return &effect{func() bool {
		for _, n := range nodes {
			r.up(n)
		}
		return alive == len(nodes)
	}}
}

func (r *run) stop(nodes ...*node) *effect {
	still := 0
	for _, n := range nodes {
		if n.halt() {
			still++
		}
	}
	return &effect{func() bool {
		for _, n := range nodes {
			n.resume()
		}
		return still == len(nodes)
	}}
}

// flicker stops a node for a moment again and again, so that it is slow.
func (r *run) flicker(n *node) *effect {
	over, ended := make(chan struct{}), make(chan int)
	go func() {
		stops := 0
		tick := time.NewTicker(60 * time.Millisecond)
		defer tick.Stop()
		for on := false; ; on = !on {
			if on {
				n.resume()
			} else if n.halt() {
				stops++
			}
			select {
			case <-tick.C:
			case <-over:
				if !on {
					n.resume()
				}
				ended <- stops
				return
			}
		}
	}()
	return &effect{func() bool { close(over); return <-ended > 2 }}
}

// restart restarts nodes in good order, one after the other, and says whether all of them were.
func (r *run) restart(ctx context.Context, nodes ...*node) bool {
	orderly := 0
	for _, n := range nodes {
		if r.leave(ctx, n) {
			orderly++
		}
		if err := r.launch(n); err != nil {
			r.problem("%v", err)
		}
		if len(nodes) > 1 {
			sleep(ctx, 2*time.Second)
		}
	}
	return orderly == len(nodes)
}

// ways are the ways that a step cuts.
func (r *run) ways(s *Step) (list []daemons.Way) {
	port := 0
	one := func(i, j int) { list = append(list, daemons.Way{From: i, To: j, Port: port}) }
	both := func(i, j int) { one(i, j); one(j, i) }
	all := r.members()
	a := r.member(s.A)
	switch s.Kind {
	case CutOneWay:
		one(a.host, r.member(s.B).host)
	case CutTwoWays:
		both(a.host, r.member(s.B).host)
	case LinkOneWay:
		port = directPort
		one(a.host, r.member(s.B).host)
	case LinkCut:
		port = directPort
		both(a.host, r.member(s.B).host)
	case Split:
		b := r.member(s.B)
		for _, n := range all {
			if n != a && n != b {
				both(a.host, n.host)
				both(b.host, n.host)
			}
		}
	case Isolate:
		for _, n := range all {
			if n != a {
				both(a.host, n.host)
			}
		}
	case Deaf:
		for _, n := range all {
			if n != a {
				one(n.host, a.host)
			}
		}
	case ClientCut:
		both(clientHost(s.A), r.member(s.B).host)
	case ClientAway:
		for _, n := range all {
			both(clientHost(s.A), n.host)
		}
	}
	return list
}

// cut cuts ways. It had an effect if packets were dropped.
func (r *run) cut(ways []daemons.Way) (*effect, error) {
	count := func() (sum uint64) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, w := range ways {
			n, err := r.network.DroppedOf(w)
			if err != nil {
				r.note("%v", err)
			}
			sum += n
		}
		return sum
	}
	mend := func(ways []daemons.Way) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, w := range ways {
			if err := r.network.MendWay(w); err != nil {
				r.problems = append(r.problems, err.Error())
			}
		}
	}
	before := count()
	for i, w := range ways {
		r.mu.Lock()
		err := r.network.CutWay(w)
		r.mu.Unlock()
		if err != nil {
			mend(ways[:i])
			return nil, err
		}
	}
	return &effect{func() bool { mend(ways); return count() > before }}, nil
}

// interpose puts a proxy between two hosts.
func (r *run) interpose(s *Step) (*effect, error) {
	i, j, port := r.member(s.A).host, 0, 0
	if s.B > 0 {
		j = r.member(s.B).host
	}
	t := &trouble{every: 400 * time.Millisecond}
	switch s.Kind {
	case LinkDelay, LinkCorrupt, LinkReset:
		port = directPort
	}
	switch s.Kind {
	case Delay, LinkDelay:
		t.late = time.Duration(s.N) * time.Millisecond
	case Corrupt, LinkCorrupt:
		t.flip = true
	case Reset, LinkReset:
		t.reset = true
	case ClientDelay:
		i, t.late = clientHost(s.A), time.Duration(s.N)*time.Millisecond
	case ClientGarb:
		i, t.garble = clientHost(s.A), true
	}
	if i == j {
		return nil, errNoEffect
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.proxies.begin(i, j, t) {
		return nil, fmt.Errorf("there is a proxy between hosts %d and %d already", i, j)
	}
	if err := r.network.Intercept(i, j, port); err != nil {
		r.proxies.finish(i, j)
		return nil, err
	}
	return &effect{func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		if err := r.network.Release(i, j, port); err != nil {
			r.problems = append(r.problems, err.Error())
		}
		r.proxies.finish(i, j)
		return t.hurt.Load() > 0
	}}, nil
}

// fill fills a node's disk. It counts when the daemon ends (attend), as it must when it cannot write its journal.
func (r *run) fill(n *node) (*effect, error) {
	n.mu.Lock()
	n.full++
	first := n.full == 1
	n.mu.Unlock()
	file := filepath.Join(filepath.Dir(n.Dir), "ballast")
	if first {
		if err := ballast(file); err != nil {
			return nil, err
		}
	}
	return &effect{func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.full--; n.full == 0 {
			n.fullEnd = time.Now()
			if err := os.Remove(file); err != nil {
				r.note("empty a disk: %v", err)
			}
		}
		return false
	}}, nil
}

// ballast writes a file until there is no space any more.
func ballast(path string) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("fill a disk: %w", err)
	}
	defer file.Close()
	for size := 1 << 20; size > 0; { // down to the last byte
		if _, err := file.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	return nil
}

// loseDisk kills a node and takes away what it had on its disk. Only where every bucket has another copy that counts, and nothing
// else is broken: more failures than the answers waited for may lose them.
func (r *run) loseDisk(ctx context.Context, n *node) (*effect, error) {
	r.mu.Lock()
	alone := len(r.active) == 1
	r.mu.Unlock()
	if !alone {
		return nil, fmt.Errorf("something else is broken at this moment")
	}
	if err := r.redundant(ctx); err != nil {
		return nil, err
	}
	if !n.down() {
		r.up(n)
		return nil, errNoEffect
	}
	for _, name := range []string{"journal", "control.db"} {
		if err := os.RemoveAll(filepath.Join(n.Dir, name)); err != nil {
			r.problem("lose a disk: %v", err)
		}
	}
	return &effect{func() bool { r.up(n); return true }}, nil
}

// figures is one line about the faults and the history so far.
func (r *run) figures() string {
	r.tapes.Lock()
	stats := r.history.checker.Stats()
	r.tapes.Unlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := 0
	for _, n := range r.faults {
		sum += n
	}
	return fmt.Sprintf("%d faults of %d kinds happened; %d events, %d grants, %d beliefs", sum, len(r.faults), stats.Events, stats.Grants, stats.Beliefs)
}

// activeSteps are the faults that last at this moment, for people.
func (r *run) activeSteps() (list []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := range r.active { // order: sorted
		list = append(list, s.String())
	}
	slices.Sort(list)
	return list
}

// clientHost is the host of a client process.
func clientHost(slot int) int { return 100 + slot }
