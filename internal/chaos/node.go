package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/e2e/daemons"
	"github.com/opencluster/oclocks/internal/fault"
)

// patience bounds every wait for something that must come, while nothing is broken. The machine may be busy with other things.
const patience = 90 * time.Second

// node is a daemon on a host of its own.
type node struct {
	*daemons.Node
	host int

	looking sync.Mutex
	nc      *nats.Conn // of the run

	mu      sync.Mutex
	process *daemons.Process
	served  chan struct{} // closed when this process serves
	downs   int           // faults that want it to be down
	stops   int           // faults that want it to stand still
	full    int           // faults that fill its disk
	fullEnd time.Time
	gone    bool // for ever
	leaving bool // it was told to end
}

// The ports of every node. It takes directPort by itself, since it listens on routePort.
const (
	clientPort = 4222
	routePort  = 6222
	directPort = 7222
	httpPort   = 8222 // for the run alone
)

// newNode makes the host of another node.
func (r *run) newNode() (*node, error) {
	host := len(r.all) + 1
	if err := r.network.Add(host); err != nil {
		return nil, err
	}
	for _, port := range []int{clientPort, routePort, directPort} {
		if err := r.proxies.serve(host, port); err != nil {
			return nil, err
		}
	}
	name := fmt.Sprint("n", host)
	dir := filepath.Join(r.dir, "nodes", name)
	if err := mountSmall(dir); err != nil {
		return nil, fmt.Errorf("give %s a disk of its own: %w", name, err)
	}
	n := &node{host: host, Node: &daemons.Node{
		Name: name, Dir: filepath.Join(dir, "data"), Wrap: daemons.At(host),
		Listen: fmt.Sprint(daemons.Address(host), ":", clientPort), Route: fmt.Sprint(daemons.Address(host), ":", routePort),
		Env: []string{fault.Variable + "=" + filepath.Join(r.dir, "nodes", name+".faults")},
	}}
	r.all = append(r.all, n)
	return n, nil
}

// members are the nodes of the cluster.
func (r *run) members() []*node {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.nodes)
}

// member is a node that a step is about: the number of those that there are at this moment.
func (r *run) member(i int) *node {
	all := r.members()
	return all[(i-1)%len(all)]
}

// launch starts a node's daemon, unless a fault wants it to be down, or it is alive: two faults may have ended it, and each starts it again.
func (r *run) launch(n *node) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.downs > 0 || n.gone || n.process != nil && !isClosed(n.process.Ended()) {
		return nil
	}
	var nodes []*daemons.Node
	for _, m := range r.members() {
		nodes = append(nodes, m.Node)
	}
	n.leaving = false
	cmd := n.Command(filepath.Join(r.bin, "oclocks-daemon"), nodes, []string{
		"--http", n.metrics(), "--allow-open-zone-on-any-address", "--max-lease", maxLease.String(), "--session-lease", "3s", "--acks", r.schedule.Acks, "--buckets", fmt.Sprint(r.schedule.Buckets),
	})
	process, err := daemons.Start(cmd, (*exec.Cmd).StderrPipe, daemons.Output{File: filepath.Join(r.dir, "logs", n.Name+".log"), Keep: 200})
	if err != nil {
		return fmt.Errorf("start %s: %w", n.Name, err)
	}
	served := make(chan struct{})
	n.process, n.served = process, served
	go func() {
		if daemons.Serving(process, time.Hour) != "" {
			close(served)
		}
	}()
	r.note("%s is started: process %d", n.Name, process.Cmd.Process.Pid)
	go r.attend(n, process, served)
	return nil
}

// attend waits for the end of a daemon, judges it, and starts it again if it ended by itself.
func (r *run) attend(n *node, p *daemons.Process, serving <-chan struct{}) {
	<-p.Ended()
	p.Wait()
	n.mu.Lock()
	wanted := n.process != p || n.downs > 0 || n.gone || n.leaving
	full := n.full > 0 || time.Since(n.fullEnd) < 15*time.Second // it may have taken its time to end
	n.mu.Unlock()
	if wanted {
		return
	}
	served := isClosed(serving)
	r.note("%s ended by itself: %s; it had served: %t", n.Name, p.Cmd.ProcessState, served)
	switch {
	case full:
		r.happened(DiskFull)
	case p.Cmd.ProcessState.ExitCode() == 2 || p.Cmd.ProcessState.ExitCode() < 0 || served:
		r.problem("%s ended by itself (%s); its log ends with\n%s", n.Name, p.Cmd.ProcessState, r.logTail(n.Name, 15))
		return
	}
	for {
		<-time.After(500 * time.Millisecond) // as its supervisor would
		n.mu.Lock()
		again, full := n.process == p && n.downs == 0 && !n.gone && !n.leaving, n.full > 0
		n.mu.Unlock()
		if !again {
			return
		}
		if !full {
			break
		}
	}
	if err := r.launch(n); err != nil {
		r.problem("%v", err)
	}
}

// logTail is the end of a log.
func (r *run) logTail(name string, lines int) string {
	text, err := os.ReadFile(filepath.Join(r.dir, "logs", name+".log"))
	if err != nil {
		return err.Error()
	}
	all := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	return string(bytes.Join(all[max(0, len(all)-lines):], []byte("\n")))
}

// down kills a daemon; it stays down until as many up have been called. It says whether it was alive.
func (n *node) down() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.downs++
	p := n.process
	if p == nil || n.gone {
		return false
	}
	alive := p.Signal(syscall.SIGKILL)
	p.Wait()
	return alive && n.downs == 1
}

// up takes a down back.
func (r *run) up(n *node) {
	n.mu.Lock()
	n.downs--
	n.mu.Unlock()
	if err := r.launch(n); err != nil {
		r.problem("%v", err)
	}
}

// halt stops a daemon where it is. It says whether it stands still now and ran before.
func (n *node) halt() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stops++
	return n.process != nil && n.downs == 0 && n.stops == 1 && n.process.Signal(syscall.SIGSTOP) && stands(n.process)
}

// resume takes a halt back.
func (n *node) resume() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stops--; n.stops == 0 && n.process != nil {
		n.process.Signal(syscall.SIGCONT)
	}
}

// stands says whether a process has stopped, which takes a moment.
func stands(p *daemons.Process) bool {
	for range 200 {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Cmd.Process.Pid))
		if err != nil {
			return false
		}
		if _, rest, ok := strings.Cut(string(text), ") "); ok && strings.HasPrefix(rest, "T") {
			return true
		}
		<-time.After(5 * time.Millisecond)
	}
	return false
}

// leave ends a daemon in good order, by force if it does not go in time.
func (r *run) leave(ctx context.Context, n *node) (orderly bool) {
	n.mu.Lock()
	p := n.process
	if p == nil || n.downs > 0 || n.leaving || n.gone {
		n.mu.Unlock()
		return false
	}
	n.leaving = true
	n.mu.Unlock()
	alive := p.Signal(syscall.SIGTERM)
	timeout := time.NewTimer(25 * time.Second) // it may stand still, or nobody may be there who takes its buckets over
	defer timeout.Stop()
	select {
	case <-p.Ended():
		orderly = alive
	case <-timeout.C:
	case <-ctx.Done():
	}
	p.Kill()
	return orderly
}

// arm arms a node's fault points, none without any.
func (r *run) arm(n *node, points ...string) error {
	file := filepath.Join(r.dir, "nodes", n.Name+".faults")
	if err := os.WriteFile(file+"~", []byte(strings.Join(points, "\n")+"\n"), 0o600); err != nil {
		return fmt.Errorf("arm a fault point: %w", err)
	}
	if err := os.Rename(file+"~", file); err != nil {
		return fmt.Errorf("arm a fault point: %w", err)
	}
	return nil
}

// join has a new node join the cluster.
func (r *run) join(ctx context.Context) (*node, error) {
	r.mu.Lock()
	n, err := r.newNode()
	r.mu.Unlock()
	if err != nil {
		return nil, err
	}
	token, err := r.joinToken(ctx)
	if err != nil {
		return nil, err
	}
	env := n.Env
	n.Env = append(slices.Clone(env), "OCLOCKS_JOIN_TOKEN="+token)
	if err := r.launch(n); err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if err = n.serving(bounded); err == nil {
		if n.ID, err = conf.NodeID(n.Dir); err == nil {
			n.Env = env
			return n, nil
		}
	}
	n.end()
	r.toRemove(n) // it may be a member already
	return nil, fmt.Errorf("%s does not join: %w", n.Name, err)
}

// serving waits until a daemon that was launched serves.
func (n *node) serving(ctx context.Context) error {
	n.mu.Lock()
	served, p := n.served, n.process
	n.mu.Unlock()
	if p == nil {
		return errors.New("it is not started")
	}
	select {
	case <-served:
		return nil
	case <-p.Ended():
		return errors.New("it has ended")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// isClosed says whether a channel is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
