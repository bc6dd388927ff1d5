package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/rpc"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/opencluster/oclocks/bench/rig"
)

const (
	dsyncCommand = "dsync-node" // makes this program a lock server
	dsyncServing = "the lock server serves"
	dsyncNodes   = 3
	dsyncQuorum  = dsyncNodes/2 + 1
	dsyncTimeout = time.Second // of an attempt, as in MinIO
)

var dsyncPeer = peer{
	Key: "dsync", Name: "dsync's protocol, 3 nodes",
	Settings: "ours, after the description of MinIO's dsync (the module cannot be had from the proxy): a request to all nodes over " +
		"net/rpc, granted by a majority, all answers awaited, another try after up to 1 s; nothing on disk",
	Lacks: "not safe: a node that restarts has forgotten; no queue: waiters poll and starve; no fencing token",
	lacking: func() error {
		return nil
	},
	version: func(context.Context) string { return "as of MinIO's last releases" },
	start:   startDsync,
}

// DsyncArgs is what a node is asked.
type DsyncArgs struct{ Resource, UID string }

// DsyncNode is one lock server: it knows who has what, and no more.
type DsyncNode struct {
	mu      sync.Mutex
	holders map[string]string
}

// Lock grants if nobody has it.
func (n *DsyncNode) Lock(args DsyncArgs, granted *bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if _, held := n.holders[args.Resource]; !held {
		n.holders[args.Resource] = args.UID
		*granted = true
	}
	return nil
}

// Unlock takes it from whoever has it under this identifier.
func (n *DsyncNode) Unlock(args DsyncArgs, done *bool) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if *done = n.holders[args.Resource] == args.UID; *done {
		delete(n.holders, args.Resource)
	}
	return nil
}

// serveDsync is the process of one node: its address.
func serveDsync(args []string) error {
	if len(args) != 1 {
		return errors.New("expected an address")
	}
	server := rpc.NewServer()
	if err := server.RegisterName("Locks", &DsyncNode{holders: make(map[string]string)}); err != nil {
		return err
	}
	l, err := net.Listen("tcp", args[0])
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Fprintln(os.Stderr, dsyncServing)
	server.Accept(l)
	return errors.New("nobody listens any more")
}

type dsyncService struct {
	tried
	nodes   []*rig.Child
	clients [connections / dsyncNodes][dsyncNodes]*dsyncClient
	uid     atomic.Uint64
}

func startDsync(ctx context.Context, dir string) (_ service, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	addresses, err := rig.FreeAddresses(dsyncNodes)
	if err != nil {
		return nil, err
	}
	s := &dsyncService{}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	for i, a := range addresses {
		c, err := rig.Spawn(exec.Command(self, dsyncCommand, a), filepath.Join(dir, strconv.Itoa(i)), dsyncServing)
		if err != nil {
			return nil, fmt.Errorf("start a lock server: %w", err)
		}
		s.nodes = append(s.nodes, c)
		if err := c.Serving(ctx); err != nil {
			return nil, err
		}
		for k := range s.clients {
			s.clients[k][i] = &dsyncClient{address: a}
		}
	}
	return s, nil
}

// dsyncClient is a connection to a node, made anew when it is gone.
type dsyncClient struct {
	address string
	mu      sync.Mutex
	client  *rpc.Client
}

func (c *dsyncClient) call(method string, args DsyncArgs) bool {
	c.mu.Lock()
	if c.client == nil {
		client, err := rpc.Dial("tcp", c.address)
		if err != nil {
			c.mu.Unlock()
			return false
		}
		c.client = client
	}
	client := c.client
	c.mu.Unlock()
	var done bool
	err := client.Call("Locks."+method, args, &done)
	if errors.Is(err, rpc.ErrShutdown) {
		c.mu.Lock()
		if c.client == client {
			c.client = nil
		}
		c.mu.Unlock()
	}
	return err == nil && done
}

func (c *dsyncClient) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.client != nil {
		_ = c.client.Close() // the server goes too
	}
}

func (s *dsyncService) Worker(_ context.Context, n int) (worker, error) {
	return &dsyncWorker{service: s, nodes: s.clients[n%len(s.clients)]}, nil
}

func (s *dsyncService) Victim(context.Context) (*rig.Child, error) { return s.nodes[0], nil }

func (s *dsyncService) Stop() {
	for _, set := range s.clients {
		for _, c := range set {
			if c != nil {
				c.close()
			}
		}
	}
	killAll(s.nodes)
}

type dsyncWorker struct {
	service *dsyncService
	nodes   [dsyncNodes]*dsyncClient
	args    DsyncArgs
	has     [dsyncNodes]bool
}

func (w *dsyncWorker) Lock(ctx context.Context, name string) error {
	for n := 0; ; n++ {
		w.args = DsyncArgs{name, strconv.FormatUint(w.service.uid.Add(1), 10)}
		if w.broadcast(ctx) {
			return nil
		}
		w.release()
		if n == 0 {
			w.service.found(name)
		}
		if err := rest(ctx, between(0, dsyncTimeout)); err != nil {
			return err
		}
	}
}

// broadcast asks all nodes and waits for all of them, for a second.
func (w *dsyncWorker) broadcast(ctx context.Context) bool {
	type answer struct {
		node    int
		granted bool
	}
	args := w.args
	answers := make(chan answer, dsyncNodes)
	for i, node := range w.nodes {
		go func() { answers <- answer{i, node.call("Lock", args)} }()
	}
	timer := time.NewTimer(dsyncTimeout)
	defer timer.Stop()
	w.has = [dsyncNodes]bool{}
	granted := 0
	for got := range dsyncNodes {
		select {
		case a := <-answers:
			if w.has[a.node] = a.granted; a.granted {
				granted++
			}
		case <-timer.C:
		case <-ctx.Done():
		}
		if ctx.Err() != nil || got+1-granted > dsyncNodes-dsyncQuorum {
			go func() { // what is granted late is given back
				for range dsyncNodes - got - 1 {
					if a := <-answers; a.granted {
						w.nodes[a.node].call("Unlock", args)
					}
				}
			}()
			return false
		}
	}
	return granted >= dsyncQuorum
}

func (w *dsyncWorker) release() {
	var group sync.WaitGroup
	for i, has := range w.has {
		if has {
			group.Go(func() { w.nodes[i].call("Unlock", w.args) })
		}
	}
	group.Wait()
}

func (w *dsyncWorker) Unlock(context.Context) error {
	w.release()
	return nil
}

func (w *dsyncWorker) Close() {}
