package conf

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// checkCluster looks at what a clustered daemon needs: certificates, its own address, every other node.
func checkCluster(ctx context.Context, s *Settings) []Finding {
	if !s.Clustered() {
		return nil
	}
	identity, node, certificate := checkCertificates(s)
	findings := []Finding{certificate}
	if s.Token != "" && identity == nil {
		findings = append(findings, checkToken(s))
	}
	findings = append(findings, checkClusterListen(ctx, s.ClusterListen, identity, node))
	return append(findings, checkPeers(ctx, s, identity, node)...)
}

// checkCertificates gives the identity with which to ask the others, nil if there is none. It writes nothing, so that is a
// new one of the same node.
func checkCertificates(s *Settings) (identity *Identity, node string, f Finding) {
	path := filepath.Join(tlsDir(s.Data), authorityFile)
	f = Finding{What: "certificates " + tlsDir(s.Data)}
	content, err := readSecret(path, maxPEM)
	switch {
	case errors.Is(err, fs.ErrNotExist) && (s.MayFound() || s.Token != ""):
		f.OK, f.Detail = true, "none yet, the daemon makes or gets them"
		return nil, "", f
	case errors.Is(err, fs.ErrNotExist):
		f.Detail, f.Fix = "none, so no other node will talk to this one", "make a join token on a node of the cluster, and give it with --join-token"
		return nil, "", f
	case err != nil:
		f.Detail, f.Fix = err.Error(), "let the daemon's user, and nobody else, read it"
		return nil, "", f
	}
	authority, err := ParseAuthority(content)
	if err != nil {
		f.Detail, f.Fix = path+": "+err.Error(), "copy the file from another node of the cluster"
		return nil, "", f
	}
	id, err := os.ReadFile(filepath.Join(s.Data, "node-id"))
	if node = strings.TrimSpace(string(id)); err == nil {
		err = CheckNodeID(node)
	}
	if err == nil {
		identity, err = NewIdentity(authority, node)
	}
	if err != nil {
		f.Detail, f.Fix = "the node's identifier: "+err.Error(), "restore the file node-id"
		return nil, "", f
	}
	f.OK, f.Detail = true, fmt.Sprintf("node %s of cluster %s, until %s", node, authority.Cluster(), authority.cert.NotAfter.Format(time.DateOnly))
	if name := authority.Cluster(); name != s.Cluster {
		f.OK, f.Detail = false, fmt.Sprintf("they are of cluster %s, and cluster is set to %s", name, s.Cluster)
		f.Fix = "set cluster to " + name
	}
	return identity, node, f
}

func checkToken(s *Settings) Finding {
	f := Finding{What: "token", Fix: "make a new one on a node of the cluster"}
	text, err := s.JoinToken()
	var t *JoinToken
	if err == nil {
		t, err = ParseJoinToken(text)
	}
	if err == nil {
		err = t.CheckExpiry(time.Now())
	}
	if err != nil {
		f.Detail = err.Error()
		return f
	}
	f.OK, f.Fix = true, ""
	f.Detail = fmt.Sprintf("until %s, to join by %s", t.Expires().UTC().Format(time.RFC3339), strings.Join(t.URLs, ", "))
	return f
}

// checkClusterListen says whether the address is free, or in use by this node's own daemon.
func checkClusterListen(ctx context.Context, addr string, identity *Identity, node string) Finding {
	f := Finding{What: "cluster_listen " + addr}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err == nil {
		err = l.Close()
	}
	switch {
	case err == nil:
		f.OK, f.Detail = true, "free"
		return f
	case !errors.Is(err, syscall.EADDRINUSE):
		f.Detail, f.Fix = err.Error(), "choose an address of this machine with --cluster-listen"
		return f
	}
	f.Detail, f.Fix = "in use", "stop what listens there, or choose another address with --cluster-listen"
	if identity == nil {
		return f
	}
	if there, err := Probe(ctx, dialable(addr), identity); err == nil && there.Node == node {
		f.OK, f.Fix, f.Detail = true, "", "in use by this node's daemon"
	}
	return f
}

// dialable is an address to connect to for one to listen on.
func dialable(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// checkPeers connects to every other node that is known, and to all addresses of those that are named in join.
func checkPeers(ctx context.Context, s *Settings, identity *Identity, node string) []Finding {
	var findings []Finding
	hosts := slices.Clone(s.Join)
	known, err := SavedRoutes(s.Data)
	if err != nil {
		findings = append(findings, Finding{What: "addresses of the other nodes", Detail: err.Error(), Fix: "remove the file, and name them with --join"})
	}
	for _, id := range slices.Sorted(maps.Keys(known)) {
		if id != node {
			hosts = append(hosts, known[id]...)
		}
	}
	slices.Sort(hosts)
	var addresses []string
	for _, hostPort := range slices.Compact(hosts) {
		found, err := resolve(ctx, hostPort)
		if err != nil {
			findings = append(findings, Finding{What: "node at " + hostPort, Detail: err.Error(), Fix: "correct join, or the DNS"})
		}
		addresses = append(addresses, found...)
	}
	slices.Sort(addresses)
	addresses = slices.Compact(addresses)
	peers := make([]Finding, len(addresses))
	var probes sync.WaitGroup
	for i, address := range addresses {
		probes.Go(func() { peers[i] = checkPeer(ctx, address, identity, node) })
	}
	probes.Wait()
	return append(findings, peers...)
}

func resolve(ctx context.Context, hostPort string) ([]string, error) {
	host, port, err := net.SplitHostPort(hostPort)
	if err != nil {
		return nil, err
	}
	if net.ParseIP(host) != nil {
		return []string{hostPort}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	ips, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return nil, err
	}
	addresses := make([]string, len(ips))
	for i, ip := range ips {
		addresses[i] = net.JoinHostPort(ip, port)
	}
	return addresses, nil
}

func checkPeer(ctx context.Context, address string, identity *Identity, node string) Finding {
	f := Finding{What: "node at " + address}
	if identity == nil { // without a certificate all that can be known is whether somebody is there
		d := net.Dialer{Timeout: dialTimeout}
		conn, err := d.DialContext(ctx, "tcp", address)
		if err == nil {
			err = conn.Close()
		}
		if err != nil {
			f.Detail, f.Fix = probeError(err).Error(), "start that daemon, or correct join"
			return f
		}
		f.OK, f.Detail = true, "somebody listens there"
		return f
	}
	there, err := Probe(ctx, address, identity)
	switch {
	case err != nil:
		f.Detail, f.Fix = err.Error(), "start that daemon, or correct its address"
	case there.Cluster != identity.Authority().Cluster():
		f.Detail, f.Fix = "is set to cluster "+there.Cluster, "set cluster to "+identity.Authority().Cluster()+" there"
	case there.Node == node:
		f.OK, f.Detail = true, "this node itself"
	default:
		f.OK, f.Detail = true, "is node "+there.Node
	}
	return f
}
