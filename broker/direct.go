package broker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"syscall"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker/direct"
	"github.com/opencluster/oclocks/conf"
)

// directSubject is where a node is asked for the address of its direct links.
func directSubject(node uint64) string { return "node." + strconv.FormatUint(node, 10) + ".direct" }

// openDirect begins to make direct links to the other nodes. It is the last of what is opened: they bring messages.
func (l *links) openDirect() error {
	s := l.d.settings
	if !s.Clustered() || s.DirectListen == conf.Off {
		return nil
	}
	listener, err := l.directListener()
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return errors.Join(fmt.Errorf("listen for direct links: %w", err), listener.Close())
	}
	address := []byte(s.DirectAddress(port))
	answer := func(msg *nats.Msg) {
		if err := msg.Respond(address); err != nil {
			l.d.log.Debug("another node is not told where this one listens for direct links", "error", err)
		}
	}
	if _, err := l.conn.Subscribe(directSubject(l.self), answer); err != nil {
		return errors.Join(fmt.Errorf("listen for the other nodes: %w", err), listener.Close())
	}
	l.direct = direct.Start(direct.Config{
		Listener: listener, TLS: l.d.identity.TLS(), Self: l.self, Logger: l.d.log, Peers: l.peers,
		Ask: l.askDirect, Receive: l.receiveDirect, Down: l.downDirect,
	})
	return nil
}

// directListener listens where the settings say. If they say nothing and the usual port is taken, any other will do: the
// others ask for it.
func (l *links) directListener() (net.Listener, error) {
	address, chosen := l.d.settings.DirectListenAddress(l.d.nats.RouteAddr().Port)
	listener, err := net.Listen("tcp", address)
	if !chosen && errors.Is(err, syscall.EADDRINUSE) {
		host, _, _ := net.SplitHostPort(address) // it was made of a host
		listener, err = net.Listen("tcp", net.JoinHostPort(host, "0"))
	}
	if err != nil {
		return nil, fmt.Errorf("listen for direct links: %w; choose another address with --direct-listen, or off", err)
	}
	return listener, nil
}

// peers are the nodes that have buckets.
func (l *links) peers() []direct.Peer {
	state := l.d.state.Load()
	peers := make([]direct.Peer, 0, len(state.Nodes))
	for i := range state.Nodes {
		if n := &state.Nodes[i]; !n.Arbiter {
			peers = append(peers, direct.Peer{Number: n.Number, Identifier: n.ID})
		}
	}
	return peers
}

// askDirect asks another node where it listens. One that is not there, or is of an older version, is known at once.
func (l *links) askDirect(ctx context.Context, node uint64) (string, error) {
	msg, err := l.conn.RequestWithContext(ctx, directSubject(node), nil)
	if err != nil {
		return "", fmt.Errorf("ask node %d for its address: %w", node, err)
	}
	return string(msg.Data), nil
}

// receiveDirect gives what takes the frames of a new link.
func (l *links) receiveDirect(link *direct.Link) func(frame []byte) error {
	in := l.inlet(link.Node())
	if link.Version() < passVersion {
		return in.takeDirect
	}
	p := l.openPassage(link)
	return func(frame []byte) error {
		if frame[0] == framePass {
			return p.take(frame)
		}
		return in.takeDirect(frame)
	}
}

// downDirect is told of links that are over.
func (l *links) downDirect(link *direct.Link) {
	if p := l.passage(link.Node()); p != nil && p.link == link {
		l.closePassage(p)
	}
}

// takeDirect takes a frame from a direct link. What cannot be read may be of a newer version, and is told as it is with NATS; a
// node that speaks in another one's name is not listened to any longer.
func (in *inlet) takeDirect(frame []byte) error {
	if err := in.take(frame); errors.Is(err, errSender) {
		return err
	}
	return nil
}

// directLinks are the nodes with which there is a direct link; nil if this node wants none.
func (d *Daemon) directLinks() []uint64 {
	if d.links == nil || d.links.direct == nil {
		return nil
	}
	links := slices.AppendSeq([]uint64{}, maps.Keys(d.links.direct.Up())) // not nil
	slices.Sort(links)
	return links
}

// closeDirect ends the direct links; nothing comes over them any more when it returns.
func (d *Daemon) closeDirect() {
	if d.links != nil && d.links.direct != nil {
		d.links.direct.Close()
	}
}
