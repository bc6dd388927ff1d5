package ladder

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/bench/rig"
	"github.com/opencluster/oclocks/broker/direct"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/journal"
)

// Command makes this program one of the processes.
const Command = "ladder-node"

const nodes = 3

// Steps are what is done before a request is answered, each with all of the one before it.
var Steps = []string{
	"one cascade to the next node and its confirmation, over TCP",
	"over a direct link, which is TLS",
	"with a pump and a shard, which makes batches, at each end",
	"with a journal at each end",
	"with the request, the chain's messages and the grant encoded",
}

const (
	stepTCP = iota
	stepTLS
	stepShard
	stepJournal
	stepEncoded
)

// Subject is where a node answers when it has done what a step says.
func Subject(step, node int) string { return fmt.Sprint("ladder.", step, ".", node) }

// way carries frames to other nodes; false: there is no way now.
type way interface {
	Send(to uint64, frame []byte) bool
}

// step answers requests. take is called by the goroutine that reads from the other node, and may keep the frame.
type step interface {
	ask(msg *nats.Msg)
	take(from uint64, frame []byte)
}

// Start starts the processes, with further environment, and returns when they answer at each step.
func Start(ctx context.Context, env []string) (_ *rig.Plain, stop func(), err error) {
	dir, err := os.MkdirTemp("", "oclocks-bench")
	if err != nil {
		return nil, nil, err
	}
	remove := func() { os.RemoveAll(dir) } // it is in the temporary directory
	defer func() {
		if err != nil {
			remove()
		}
	}()
	authority, err := conf.NewAuthority("ladder")
	if err != nil {
		return nil, nil, err
	}
	content, err := authority.Encode()
	if err != nil {
		return nil, nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "authority"), content, 0o600); err != nil {
		return nil, nil, err
	}
	addresses, err := rig.FreeAddresses(2 * nodes)
	if err != nil {
		return nil, nil, err
	}
	p, err := rig.StartServers(ctx, Command, env, dir, strings.Join(addresses[:nodes], ","), strings.Join(addresses[nodes:], ","))
	if err != nil {
		return nil, nil, err
	}
	if err := reach(ctx, p); err != nil {
		p.Stop()
		return nil, nil, err
	}
	return p, func() { p.Stop(); remove() }, nil
}

// reach waits until each node answers at each step.
func reach(ctx context.Context, p *rig.Plain) error {
	ctx, cancel := context.WithTimeout(ctx, rig.Patience)
	defer cancel()
	for i := range nodes {
		nc, err := nats.Connect(p.URL(i))
		if err != nil {
			return fmt.Errorf("connect to a node of the ladder: %w", err)
		}
		defer nc.Close() //nolint:gocritic // one for each node
		for step := range Steps {
			if err := rig.Await(ctx, func() (bool, error) {
				_, err := nc.Request(Subject(step, i), []byte(rig.AcquireText), rig.LookPause)
				if errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders) {
					return false, nil // there is no link yet
				}
				return true, err
			}); err != nil {
				return fmt.Errorf("reach step %d of the ladder: %w", step, err)
			}
		}
	}
	return nil
}

// node is one of the processes; its number is from 1 on, and it cascades to the next one.
type node struct {
	number, next uint64
	steps        []step
}

// Serve is the process of one node: what ServeMore takes, the directory, and the addresses of links over TCP and over TLS.
func Serve(args []string) error {
	return rig.ServeMore(args, func(nc *nats.Conn, number int, args []string) error {
		if len(args) != 3 {
			return errors.New("expected a directory and two lists of addresses")
		}
		n := &node{number: uint64(number) + 1, next: uint64((number+1)%nodes) + 1}
		return n.begin(nc, args[0], strings.Split(args[1], ","), strings.Split(args[2], ","))
	})
}

func (n *node) begin(nc *nats.Conn, dir string, plain, secured []string) error {
	tcp, err := newTCP(n, plain)
	if err != nil {
		return err
	}
	links, err := n.link(dir, secured)
	if err != nil {
		return err
	}
	n.steps = []step{stepTCP: newRelay(stepTCP, n.next, tcp), stepTLS: newRelay(stepTLS, n.next, links)}
	for kind := stepShard; kind <= stepEncoded; kind++ {
		s := newShard(kind, n.next, links)
		if kind >= stepJournal {
			if s.journal, _, err = journal.Open(filepath.Join(dir, fmt.Sprint("journal-", n.number, "-", kind)), journal.Options{}); err != nil {
				return err
			}
		}
		n.steps = append(n.steps, s)
		go s.pump()
		go s.run()
	}
	for kind, s := range n.steps {
		if _, err := nc.Subscribe(Subject(kind, int(n.number)-1), s.ask); err != nil {
			return err
		}
	}
	tcp.open()
	return nil
}

// link begins the links over TLS. They are made in the background.
func (n *node) link(dir string, addresses []string) (*direct.Links, error) {
	content, err := os.ReadFile(filepath.Join(dir, "authority"))
	if err != nil {
		return nil, err
	}
	authority, err := conf.ParseAuthority(content)
	if err != nil {
		return nil, err
	}
	identity, err := conf.NewIdentity(authority, named(n.number))
	if err != nil {
		return nil, err
	}
	var peers []direct.Peer
	for i := range uint64(nodes) {
		peers = append(peers, direct.Peer{Number: i + 1, Identifier: named(i + 1)})
	}
	listener, err := net.Listen("tcp", addresses[n.number-1])
	if err != nil {
		return nil, err
	}
	return direct.Start(direct.Config{
		Listener: listener, TLS: identity.TLS(), Self: n.number, Logger: slog.New(slog.DiscardHandler),
		Peers: func() []direct.Peer { return peers },
		Ask:   func(_ context.Context, node uint64) (string, error) { return addresses[node-1], nil },
		Receive: func(link *direct.Link) func([]byte) error {
			return func(frame []byte) error { return n.take(link.Node(), frame) }
		},
	}), nil
}

// named is the identifier of a node.
func named(number uint64) string { return strings.Repeat("a", 25) + string(rune('a'+number)) }

// take gives a frame to the step that its first byte names.
func (n *node) take(from uint64, frame []byte) error {
	if len(frame) == 0 || int(frame[0]) >= len(n.steps) {
		return errors.New("a frame of no step")
	}
	n.steps[frame[0]].take(from, frame[1:])
	return nil
}
