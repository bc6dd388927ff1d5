package chaos

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/opencluster/oclocks/conf/shared"
)

// What operators do to a cluster while it works.

// toolTime bounds one command of an operator.
const toolTime = 12 * time.Second

// tool runs a command with the directory of a node that is alive.
func (r *run) tool(ctx context.Context, name string, args ...string) (string, error) {
	at := slices.IndexFunc(r.members(), (*node).runs)
	if at < 0 {
		return "", errors.New("no node is alive")
	}
	n := r.members()[at]
	bounded, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	cmd := exec.CommandContext(bounded, filepath.Join(r.bin, name), append([]string{"--data", n.Dir}, args...)...) //nolint:gosec // our own command
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// config runs oclocks-config.
func (r *run) config(ctx context.Context, args ...string) (string, error) {
	return r.tool(ctx, "oclocks-config", args...)
}

// joinToken makes a token for a new node.
func (r *run) joinToken(ctx context.Context) (string, error) {
	n := r.members()[0]
	bounded, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	out, err := exec.CommandContext(bounded, filepath.Join(r.bin, "oclocks-startup"), "token", "--data", n.Dir, "--at", "nats://"+n.Listen).Output() //nolint:gosec // our own command
	if err != nil {
		return "", fmt.Errorf("make a join token: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// runs says whether a node's daemon serves and does not stand still.
func (n *node) runs() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.process != nil && n.downs == 0 && n.stops == 0 && !n.gone && !n.leaving && isClosed(n.served) && !isClosed(n.process.Ended())
}

// operate carries out what an operator does.
func (r *run) operate(ctx context.Context, s *Step) (*effect, error) {
	switch s.Kind {
	case AddNode:
		return &effect{func() bool { return r.addNode(ctx) }}, nil
	case RemoveNode:
		return r.removeNode(ctx, r.member(s.A))
	case MoveBucket:
		to := r.members()[s.N%len(r.members())]
		return r.tell(ctx, "buckets", "move", fmt.Sprint(s.N-1), to.Name, "--wait", "5s")
	case Drain:
		n := r.member(s.A)
		r.undrain(n) // also if the command fails: it may have been carried out
		return r.tell(ctx, "nodes", "drain", n.Name, "--wait", "5s")
	case Double:
		if r.schedule.Buckets<<r.doubled > mostBuckets/2 {
			return nil, errNoEffect
		}
		e, err := r.double(ctx)
		if err == nil {
			r.doubled++
		}
		return e, err
	case Setting:
		return r.tell(ctx, "set", s.Key, s.Value)
	}
	return nil, fmt.Errorf("there is no fault %q", s.Kind)
}

// mostBuckets and mostNodes bound what a run grows to.
const (
	mostBuckets = 64
	mostNodes   = 6
	mostHosts   = 20 // nodes that there ever are
)

func (r *run) tell(ctx context.Context, args ...string) (*effect, error) {
	if _, err := r.config(ctx, args...); err != nil {
		return nil, err
	}
	return done(true), nil
}

// undrain is done when everything is healed, so the drain goes on until then.
func (r *run) undrain(n *node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drained = append(r.drained, n)
}

func (r *run) addNode(ctx context.Context) bool {
	if len(r.members()) >= mostNodes || len(r.all) >= mostHosts {
		return false
	}
	n, err := r.join(ctx)
	if err != nil {
		r.note("%v", err)
		return false
	}
	r.mu.Lock()
	r.nodes = append(r.nodes, n)
	r.mu.Unlock()
	return true
}

// removeNode has a node leave for ever: in good order, so that nothing is lost that only it has.
func (r *run) removeNode(ctx context.Context, n *node) (*effect, error) {
	if len(r.members()) <= 3 {
		return nil, errNoEffect
	}
	if err := r.redundant(ctx); err != nil {
		return nil, err
	}
	return &effect{func() bool {
		if !r.leave(ctx, n) {
			if err := r.launch(n); err != nil {
				r.problem("%v", err)
			}
			return false
		}
		n.mu.Lock()
		n.gone = true
		n.mu.Unlock()
		r.mu.Lock()
		r.nodes = slices.DeleteFunc(slices.Clone(r.nodes), func(m *node) bool { return m == n })
		r.mu.Unlock()
		r.toRemove(n)
		_, err := r.config(ctx, "nodes", "remove", n.Name)
		if err != nil {
			r.note("%v", err)
			return true // it is gone, and forgotten when everything is healed
		}
		r.removed(n)
		return true
	}}, nil
}

func (r *run) toRemove(n *node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leftovers = append(r.leftovers, n)
}

func (r *run) removed(n *node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leftovers = slices.DeleteFunc(slices.Clone(r.leftovers), func(m *node) bool { return m == n })
}

// heal takes back what operators did, and waits until the cluster has come together.
func (r *run) heal(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	watched := make(chan error, 1)
	watching, stop := context.WithCancel(ctx)
	go func() { watched <- r.watch(watching) }()
	err := r.comeTogether(bounded)
	stop()
	if wrong := <-watched; wrong != nil {
		return wrong
	}
	if err != nil && ctx.Err() == nil {
		r.problem("everything is healed, but after %s: %v", patience, err)
		return r.look()
	}
	return ctx.Err()
}

// comeTogether waits until all nodes are there and every bucket is as it should be, and clients are granted locks.
func (r *run) comeTogether(ctx context.Context) error {
	normal := [][]string{{"set", "min_quorum", "1"}, {"set", "copies", "0"}, {"set", "balance", "true"}}
	r.mu.Lock()
	for _, n := range r.drained {
		if !slices.Contains(r.leftovers, n) && !n.gone {
			normal = append(normal, []string{"nodes", "undrain", n.Name})
		}
	}
	for _, n := range r.leftovers {
		normal = append(normal, []string{"nodes", "remove", n.Name})
	}
	r.drained, r.leftovers = nil, nil
	r.mu.Unlock()
	for {
		if err := r.insist(ctx, normal); err != nil {
			return err
		}
		err := r.settles(ctx)
		if err == nil {
			return r.progress(ctx)
		}
		if ctx.Err() != nil {
			return err
		}
	}
}

// insist has operators' commands carried out.
func (r *run) insist(ctx context.Context, commands [][]string) error {
	for _, args := range commands {
		for {
			_, err := r.config(ctx, args...)
			if err == nil || args[0] == "nodes" && strings.Contains(err.Error(), shared.ErrNotFound.Error()) {
				break
			}
			if !sleep(ctx, 300*time.Millisecond) {
				return err
			}
		}
	}
	return nil
}

// settles waits a while until the cluster is whole. If it is not, what operators took back has to be said again: a command of a round that
// was given up (a drain, say) may be carried out after it was taken back.
func (r *run) settles(ctx context.Context) error {
	for end := time.Now().Add(10 * time.Second); ; {
		err := r.settled(ctx)
		if err == nil || time.Now().After(end) || !sleep(ctx, 100*time.Millisecond) {
			return err
		}
	}
}

// shift moves the wall clock of a node, as the code of oclocks there reads it.
func (r *run) shift(ctx context.Context, n *node, seconds int) (*effect, error) {
	if err := r.arm(n, fmt.Sprint("clock.wall=", seconds)); err != nil {
		return nil, err
	}
	moved := false
	for range 20 {
		if now, err := r.wallOf(n); err == nil {
			away := time.Until(now) - time.Duration(seconds)*time.Second
			if moved = away.Abs() < 2*time.Second; moved { // it looks now and then
				break
			}
		}
		if !sleep(ctx, 30*time.Millisecond) {
			break
		}
	}
	return &effect{func() bool {
		if err := r.arm(n); err != nil {
			r.problem("%v", err)
		}
		return moved
	}}, nil
}

// killAll ends all processes.
func (r *run) killAll() {
	r.mu.Lock()
	all := r.all
	r.mu.Unlock()
	for _, n := range all {
		n.end()
	}
	for _, w := range r.workers {
		w.mu.Lock()
		if w.process != nil {
			w.process.Kill()
		}
		w.mu.Unlock()
	}
	for _, n := range all {
		unmount(filepath.Dir(n.Dir))
	}
}

// end ends a daemon for ever.
func (n *node) end() {
	n.mu.Lock()
	n.gone = true
	if n.process != nil {
		n.process.Signal(syscall.SIGCONT)
		n.process.Kill()
	}
	n.mu.Unlock()
	n.looking.Lock()
	defer n.looking.Unlock()
	if n.nc != nil {
		n.nc.Close()
	}
}
