package broker

import (
	"cmp"
	"net"
	"slices"

	"github.com/opencluster/oclocks/arbiter/plan"
	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/subjects"
)

// What a node is, as `servers` and the events tell it.
const (
	statusUp       = "up"
	statusAway     = "away"
	statusDraining = "draining"
	statusStopping = "stopping"
)

// servers lists the nodes that clients can connect to, the nearest first.
func (z *zone) servers(location string) subjects.Body {
	d := z.d
	state := d.state.Load()
	if state.Settings.HideServers {
		return &subjects.Refusal{Code: 403, Reason: subjects.ReasonDenied,
			Message: "this cluster does not tell its servers; stay at the address that you were given"}
	}
	return &subjects.Servers{Servers: nearest(state, d.number, location, d.server)}
}

// nearest lists the nodes by how far they are from a location, or from this node if none is given. Of equal ones this node
// comes first, since the client is connected to it, then those with the better priority.
func nearest(state *shared.State, self uint64, location string, server func(n *shared.Node) subjects.Server) []subjects.Server {
	if n := state.Node(self); location == "" && n != nil {
		location = n.Location
	}
	var nodes []*shared.Node
	for i := range state.Nodes {
		if n := &state.Nodes[i]; !n.Arbiter {
			nodes = append(nodes, n)
		}
	}
	slices.SortFunc(nodes, func(a, b *shared.Node) int {
		return cmp.Or(
			cmp.Compare(plan.Distance(location, a.Location), plan.Distance(location, b.Location)),
			-boolCompare(a.Number == self, b.Number == self),
			cmp.Compare(a.Priority, b.Priority),
			cmp.Compare(a.Number, b.Number))
	})
	list := make([]subjects.Server, len(nodes))
	for i, n := range nodes {
		list[i] = server(n)
	}
	return list
}

func boolCompare(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// server is what clients are told of a node.
func (d *Daemon) server(n *shared.Node) subjects.Server {
	return subjects.Server{Node: n.ID, Name: n.Name, URLs: urls(n), Location: n.Location, Status: d.status(n)}
}

// status is what a node does, as far as this one knows.
func (d *Daemon) status(n *shared.Node) string {
	switch {
	case n.Number == d.number && !d.ready.Load(), d.stopping.has(n.Number):
		return statusStopping
	case d.peers.gone(n.Number):
		return statusAway
	case n.Drain:
		return statusDraining
	}
	return statusUp
}

// urls are where clients connect to a node. A node that listens on all addresses is found where the other nodes find it.
func urls(n *shared.Node) []string {
	list := make([]string, 0, len(n.Clients))
	for _, address := range n.Clients {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			continue // it was checked when the node registered
		}
		if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
			if len(n.Routes) == 0 {
				continue
			}
			if host, _, err = net.SplitHostPort(n.Routes[0]); err != nil || host == "" {
				continue
			}
		}
		if url := "nats://" + net.JoinHostPort(host, port); !slices.Contains(list, url) {
			list = append(list, url)
		}
	}
	return list
}
