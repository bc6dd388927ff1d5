package main

import (
	"context"
	"fmt"
	"os/exec"
	"slices"
	"strings"

	"github.com/opencluster/oclocks/bench/rig"
)

// connections is how many connections the workers of a service share where its client can share them: two to each of three
// nodes, as with oclocks.
const connections = 6

// peer is something that gives locks.
type peer struct {
	Key      string // for --peers
	Name     string
	Settings string
	Lacks    string // what it does not promise
	lacking  func() error
	version  func(ctx context.Context) string
	start    func(ctx context.Context, dir string) (service, error)
}

// service is a peer that runs.
type service interface {
	// Worker is the n-th one who wants locks.
	Worker(ctx context.Context, n int) (worker, error)
	// Waiting is how many wait for a lock; where nobody knows, how many have found it held.
	Waiting(ctx context.Context, name string) (int, error)
	// Victim is the process that leads.
	Victim(ctx context.Context) (*rig.Child, error)
	// Stop ends all of it.
	Stop()
}

// worker takes one lock at a time.
type worker interface {
	Lock(ctx context.Context, name string) error
	Unlock(ctx context.Context) error
	Close()
}

// missing is what is not there of what a peer needs.
type missing struct{ what, install string }

func (m missing) Error() string { return m.what + " is missing: " + m.install }

// needs tells which program is missing, looked for at the paths that Debian has for it too.
func needs(program, install string) (path string, err error) {
	if path, err = exec.LookPath(program); err != nil {
		return "", missing{program, install}
	}
	return path, nil
}

// printed is the first line that a program prints.
func printed(ctx context.Context, program string, args ...string) string {
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%s: %v", program, err)
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line)
}

// peers are all, in the order of the page.
var peers = []peer{
	oclocksPeer,
	redisReplicated, dsyncPeer, redsyncPeer, kvMemory, kvFile, etcdSynced, etcdUnsynced, zookeeperPeer,
	redisAlone, postgresPeer,
}

func peerNames() string {
	var all []string
	for _, p := range peers {
		all = append(all, p.Key)
	}
	return strings.Join(all, ",")
}

func known(key string) bool {
	return slices.ContainsFunc(peers, func(p peer) bool { return p.Key == key })
}
