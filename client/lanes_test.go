package client_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"maps"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/subjects"
)

// lanesOf locks and unlocks names until the client has lanes to the nodes.
func lanesOf(t *testing.T, c *client.Client, names []string, nodes ...string) {
	t.Helper()
	waitFor(t, "lanes", func() bool {
		for _, name := range names {
			must(t, lockOf(t, c.Mutex(name)).Release(within(t)))
		}
		return slices.Equal(slices.Sorted(maps.Keys(c.Lanes())), nodes)
	})
}

// namesAt gives a name for each node.
func (f *fakeCluster) namesAt(prefix string) (names []string) {
	for _, n := range f.nodes {
		names = append(names, f.nameAt(n, prefix))
	}
	return names
}

// A client that asks often for locks of other nodes connects to these as well. Such a connection breaks while locks are held and
// waited for: what is held is held, who waits is granted, and soon there is another one.
func TestLanes(t *testing.T) {
	f := startFakeCluster(t)
	c, other := f.connect(f.nodes[0], client.WithBusyLanes(2)), f.connect(f.nodes[1])
	names := f.namesAt("name")
	must(t, lockOf(t, c.Mutex(names[1])).Release(within(t)))
	if lanes := c.Lanes(); len(lanes) > 0 {
		t.Errorf("a client that has little to do has lanes to %v", lanes)
	}
	lanesOf(t, c, names, "n1", "n2")
	before, err := c.Session(within(t))
	must(t, err)

	lane := c.Lanes()["n1"]
	if home := c.Conn().Opts.Name; !strings.HasPrefix(lane.Opts.Name, subjects.LaneName) || strings.HasPrefix(home, subjects.LaneName) {
		t.Errorf("the lane's name is %q, the home connection's %q", lane.Opts.Name, home)
	}
	sent := lane.Stats().OutMsgs
	own := lockOf(t, c.Mutex(f.nameAt(f.nodes[1], "own")))
	if now := lane.Stats().OutMsgs; now == sent {
		t.Error("a request went another way than over the lane")
	}
	wanted := f.nameAt(f.nodes[1], "wanted")
	held := lockOf(t, other.Mutex(wanted))
	got := make(chan error, 1)
	go func() {
		claim, err := c.Mutex(wanted).Lock(within(t))
		if err == nil {
			err = claim.Release(within(t))
		}
		got <- err
	}()
	waitFor(t, "the client to wait", waiting(t, other, wanted, 1))
	lane.Close()
	waitFor(t, "the lane to be missed", func() bool { return c.Lanes()["n1"] != lane })
	must(t, held.Release(within(t)))
	must(t, <-got)
	lanesOf(t, c, names, "n1", "n2")
	if own.State() != client.Held {
		t.Errorf("the lock is %v: %v", own.State(), own.Err())
	}
	after, err := c.Session(within(t))
	must(t, err)
	if after.Token != before.Token {
		t.Errorf("the session is %s (%d), it was %s (%d)", after.ID, after.Incarnation, before.ID, before.Incarnation)
	}
}

// What is answered to the inbox of a lane is heard, over the home connection when the lane is gone: here it is a grant that nobody waits
// for any more, and that the client gives back.
func TestLateGrantToLane(t *testing.T) {
	f := startFakeCluster(t)
	c := f.connect(f.nodes[0], client.WithBusyLanes(2))
	names := f.namesAt("name")
	lanesOf(t, c, names, "n1", "n2")

	nc, err := nats.Connect(f.nodes[1].srv.ClientURL())
	must(t, err)
	t.Cleanup(nc.Close)
	releases, err := nc.SubscribeSync("locks.b.*.release.*")
	must(t, err)
	acquires, err := nc.SubscribeSync("locks.b.*.acquire.*")
	must(t, err)
	waitFor(t, "the servers to know who listens", func() bool {
		must(t, c.Conn().Publish("locks.b.99.acquire.nobody", nil))
		_, err := acquires.NextMsg(10 * time.Millisecond)
		return err == nil
	})
	var asked *nats.Msg
	waitFor(t, "an acquire over a lane", func() bool {
		must(t, lockOf(t, c.Mutex(names[1])).Release(within(t)))
		asked, err = acquires.NextMsg(patience)
		must(t, err)
		return strings.Count(asked.Reply, ".") == 3 // _INBOX.<client>.<lane>.<token>
	})
	givenBack := func(key uint64) bool {
		grant := subjects.Grant{Name: names[1], Key: key, Token: key, Mode: subjects.Exclusive, Take: 1}
		must(t, nc.Publish(asked.Reply, grant.AppendJSON(nil)))
		for {
			msg, err := releases.NextMsg(50 * time.Millisecond)
			if err != nil {
				return false
			}
			var req subjects.Request
			if r := req.Decode(subjects.OpRelease, msg.Data); r != nil {
				t.Fatal(r)
			}
			if req.Key == key {
				return true
			}
		}
	}
	waitFor(t, "the lane to hear it", func() bool { return givenBack(1) })
	lane := c.Lanes()["n1"]
	lane.Close()
	waitFor(t, "the lane to be missed", func() bool { return c.Lanes()["n1"] != lane })
	waitFor(t, "the home connection to hear it", func() bool { return givenBack(2) })
}

// Buckets go to another node, or their node dies, or the one that the client is connected to: requests find their way without lanes.
func TestLanesLeadAstray(t *testing.T) {
	for what, happens := range map[string]func(f *fakeCluster){
		"hand-over": func(f *fakeCluster) {
			for b := range fakeBuckets {
				f.handOver(b, f.nodes[(b+1)%len(f.nodes)])
			}
		},
		"end of a lane's node": func(f *fakeCluster) { f.kill(f.nodes[1]) },
		"end of the own node":  func(f *fakeCluster) { f.kill(f.nodes[0]) },
	} {
		t.Run(what, func(t *testing.T) {
			f := startFakeCluster(t)
			c := f.connect(f.nodes[0], client.WithBusyLanes(1))
			names := f.namesAt("name")
			lanesOf(t, c, names, "n1", "n2")
			var held []*client.Claim
			for _, name := range f.namesAt("held") {
				held = append(held, lockOf(t, c.Mutex(name)))
			}
			happens(f)
			for range 20 {
				for _, name := range names {
					must(t, lockOf(t, c.Mutex(name)).Release(within(t)))
				}
			}
			for _, claim := range held {
				must(t, claim.Renew(within(t)))
				must(t, claim.Release(within(t)))
			}
		})
	}
}

// A client with one connection, one that connects to nothing but what it was told, and one over a connection of the caller's, never have
// another.
func TestNoLanes(t *testing.T) {
	f := startFakeCluster(t)
	nc, err := nats.Connect(f.nodes[0].srv.ClientURL())
	must(t, err)
	t.Cleanup(nc.Close)
	names := f.namesAt("name")
	for what, opt := range map[string]client.Option{
		"one connection":           client.WithOneConnection(),
		"connection of the caller": client.WithConn(nc),
		"servers of the caller":    client.WithNATSOptions(nats.IgnoreDiscoveredServers()),
	} {
		c := f.connect(f.nodes[0], client.WithBusyLanes(1), opt)
		for range 5 {
			for _, name := range names {
				must(t, lockOf(t, c.Mutex(name)).Release(within(t)))
			}
		}
		if n := c.LanesAllowed(); n != 0 {
			t.Errorf("%s: it may have %d lanes", what, n)
		}
		if lanes := c.Lanes(); len(lanes) > 0 {
			t.Errorf("%s: it has lanes to %v", what, lanes)
		}
	}
}

// Lanes to real daemons, for a user of a zone, whose replies go below an inbox of his own.
func TestLanesOfUsers(t *testing.T) {
	cluster := brokertest.StartCluster(t, 3, "", brokertest.WithZones(conf.Zone{Name: "red"}))
	creds, _, err := cluster.Daemons[0].Auth().IssueUser("red", "worker", conf.RoleUser, 0)
	must(t, err)
	file := filepath.Join(t.TempDir(), "user.creds")
	must(t, os.WriteFile(file, creds, 0o600))
	c := connect(t, cluster.Daemons[0], client.WithCredentials(file), client.WithBusyLanes(1))
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	waitFor(t, "a lane that carries requests", func() bool {
		for _, name := range names {
			must(t, lockOf(t, c.Mutex(name)).Release(within(t)))
		}
		for _, nc := range c.Lanes() {
			if nc.Stats().InMsgs > 2 {
				return true
			}
		}
		return false
	})
}

// named is a certificate for localhost and no address, and who believes it.
func named(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"localhost"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	must(t, err)
	cert, err := x509.ParseCertificate(raw)
	must(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: private}, pool
}

// Certificates are for names and the cluster tells addresses: lanes go on after a fail-over, when the home connection is to such an
// address as well.
func TestLanesWithNamesInCertificates(t *testing.T) {
	cert, pool := named(t)
	f := startFakeCluster(t, func(f *fakeCluster) {
		f.tls = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}
	})
	at, err := url.Parse(f.nodes[0].srv.ClientURL())
	must(t, err)
	c := connectURL(t, "tls://localhost:"+at.Port(), client.WithBusyLanes(2),
		client.WithNATSOptions(nats.Secure(&tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS13})))
	names := f.namesAt("name")
	lanesOf(t, c, names, "n1", "n2")
	f.kill(f.nodes[0])
	waitFor(t, "another home", func() bool { return c.Conn().ConnectedServerName() != "n0" && c.Conn().IsConnected() })
	if home := c.Conn().ConnectedUrl(); strings.Contains(home, "localhost") {
		t.Fatalf("the home connection is to %s", home)
	}
	for _, l := range c.Lanes() {
		l.Close()
	}
	waitFor(t, "a lane", func() bool {
		for _, name := range names {
			must(t, lockOf(t, c.Mutex(name)).Release(within(t)))
		}
		other := map[string]string{"n1": "n2", "n2": "n1"}[c.Conn().ConnectedServerName()] // the home may move once more
		l := c.Lanes()[other]
		return l != nil && l.IsConnected()
	})
}

// slowDialer is a dialer of a caller, who makes it stand still.
type slowDialer struct {
	stop   chan struct{} // closed: it stands still
	stands chan struct{} // it does
	over   chan struct{} // closed: it goes on
	late   chan net.Conn // what it brings then
}

func (d *slowDialer) Dial(network, address string) (net.Conn, error) {
	select {
	case <-d.stop:
		d.stands <- struct{}{}
		<-d.over
		conn, err := net.Dial(network, address)
		d.late <- conn
		return conn, err
	default:
		return net.Dial(network, address)
	}
}

// The end of a client does not wait for the caller's dialer, which knows nothing of it; what that brings is closed.
func TestCloseWhileALaneIsDialed(t *testing.T) {
	f := startFakeCluster(t)
	d := &slowDialer{stop: make(chan struct{}), stands: make(chan struct{}, 2), over: make(chan struct{}), late: make(chan net.Conn, 2)}
	c := f.connect(f.nodes[0], client.WithBusyLanes(1), client.WithNATSOptions(nats.SetCustomDialer(d)))
	close(d.stop)
	for _, name := range f.namesAt("name") {
		must(t, lockOf(t, c.Mutex(name)).Release(within(t)))
	}
	<-d.stands
	must(t, c.Close(within(t)))
	close(d.over)
	late := <-d.late
	waitFor(t, "it to be closed", func() bool { return errors.Is(late.SetDeadline(time.Time{}), net.ErrClosed) })
}
