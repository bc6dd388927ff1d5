package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/opencluster/oclocks/broker"
	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/internal/cli/ask"
	"github.com/opencluster/oclocks/internal/cli/setup"
	"github.com/opencluster/oclocks/internal/e2e/daemons"
)

// freeAddress is an address on which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	ports, err := daemons.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint("127.0.0.1:", ports[0])
}

// member makes a node and starts it: the first one without a token.
func member(t *testing.T, dir, name, token string) (*broker.Daemon, string) {
	t.Helper()
	n := &setup.Node{Data: filepath.Join(dir, name), Name: name, Listen: freeAddress(t), ClusterListen: freeAddress(t), HTTP: "off"}
	given := func(flag string) bool {
		return flag == "data" || flag == "node" || flag == "listen" || flag == "cluster-listen" || flag == "http"
	}
	if err := n.Fill(&ask.Asker{}, token == "", given); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var err error
	if token == "" {
		_, err = setup.First(n, nil)
	} else {
		_, err = setup.Join(ctx, n, token)
	}
	if err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	conf.AddFlags(flags)
	if err := flags.Set(conf.ConfigFlag, n.Config); err != nil {
		t.Fatal(err)
	}
	settings, err := conf.Load(flags, nil)
	if err != nil {
		t.Fatal(err)
	}
	d, err := broker.Start(ctx, broker.Config{Settings: settings, Logger: brokertest.Logger(t).With("n", name), LameDuck: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { brokertest.Stop(t, d) })
	return d, n.Config
}

// newCluster is a cluster of some nodes; the tool is told the first one's configuration file.
func newCluster(t *testing.T, names ...string) (c *tool, daemons []*broker.Daemon) {
	t.Helper()
	c = newTool(t)
	for _, key := range []string{"OCLOCKS_DATA", "OCLOCKS_LISTEN", "OCLOCKS_HTTP"} {
		t.Setenv(key, "")
	}
	for i, name := range names {
		token := ""
		if i > 0 {
			token, _, _ = strings.Cut(c.does("token"), "\n")
		}
		d, config := member(t, c.dir, name, token)
		if i == 0 {
			t.Setenv("OCLOCKS_CONFIG", config)
		}
		daemons = append(daemons, d)
	}
	return c, daemons
}

// soon repeats a command until its output holds want: buckets move, and statuses come, by and by.
func (c *tool) soon(args, want string) { c.t.Helper(); c.soonTimes(args, want, 1) }

// soonTimes is soon for something that is to be there so many times.
func (c *tool) soonTimes(args, want string, times int) {
	c.t.Helper()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(time.Minute); ; <-look.C {
		out, err := c.run(strings.Fields(args)...)
		if strings.Count(out, want) >= times {
			return
		}
		if time.Now().After(end) {
			c.t.Fatalf("%s: %q is not in\n%s (%v)", args, want, out, err)
		}
	}
}

// login connects as a user and asks for the zone.
func login(t *testing.T, d *broker.Daemon, creds string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c, err := client.Connect(ctx, d.URL(), client.WithCredentials(creds))
	if err != nil {
		return "", err
	}
	defer c.Close(ctx)
	info, err := c.Info(ctx)
	if err != nil {
		return "", err
	}
	return info.Zone, nil
}

func TestZonesAndUsersOfACluster(t *testing.T) {
	c, daemons := newCluster(t, "one", "two")
	c.does("zone add shop --lock-events", "in the cluster", "on all nodes")
	c.does("zone list", "shop", "default")
	c.fails("zone add shop", "exists already")
	c.fails("zone add open --open --role nobody", "role")
	c.does("user add --zone shop alice --expires 24h", "shop-alice.creds", "NATS_URL="+daemons[0].URL()+","+daemons[1].URL())
	c.fails("user add --zone shop alice", "shop-alice.creds", "--out")
	c.fails("user add --zone nowhere alice", "no zone nowhere")
	for i, d := range daemons {
		if zone, err := login(t, d, "shop-alice.creds"); err != nil || zone != "shop" {
			t.Errorf("at node %d: zone %q, %v", i+1, zone, err)
		}
	}
	c.does("verify shop-alice.creds", "ok    credentials shop-alice.creds: valid")
	c.does("user list --zone shop", "alice", "valid")
	c.does("user revoke --zone shop alice", "Revoked: alice", "all nodes")
	c.fails("user revoke --zone shop alice", "not found")
	c.soon("user list", "revoked")
	for i, d := range daemons {
		for end := time.Now().Add(time.Minute); ; { // the other node hears of it by and by
			if _, err := login(t, d, "shop-alice.creds"); err != nil {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("revoked credentials count at node %d", i+1)
			}
		}
	}
	c.fails("zone remove shop --keep-keys", "--keep-keys")
	c.does("zone remove shop", "removed from the cluster")
	c.fails("zone remove default", "last one")
	if strings.Contains(c.file("one/oclocks.yaml"), "shop") {
		t.Error("the file was changed")
	}
}

func TestSettingsOfACluster(t *testing.T) {
	c, _ := newCluster(t, "one")
	c.does("set max_lease 2m", "2m on all nodes")
	c.does("get max_lease", "2m0s\n")
	c.does("get", "# of this node", "# shared by all nodes", "give_up:")
	var all []settingView
	if err := json.Unmarshal([]byte(c.does("get --json")), &all); err != nil || len(all) < len(conf.Keys()) {
		t.Errorf("got %v, %v", all, err)
	}
	c.fails("set max_lease 1s", "session_lease")
	c.fails("set acks both", "first, majority or all")
	c.fails("set buckets 64", "buckets double")
	c.does("set location eu/fra", "one/oclocks.yaml", "nodes set NODE --location eu/fra")
	c.does("get location", "eu/fra")
	c.does("lock", "locked")
	c.does("lock", "locked")
	c.fails("set max_lease 3m", "locked", "oclocks-config unlock")
	c.fails("nodes set one --priority 1", "locked")
	c.does("unlock", "can be changed")
	c.does("set max_lease 3m")
	if strings.Contains(c.file("one/oclocks.yaml"), "max_lease") {
		t.Error("the file was changed")
	}
}

func TestNodesAndBuckets(t *testing.T) {
	c, daemons := newCluster(t, "one", "two", "three")
	c.does("nodes", "one", "two", "leads", daemons[1].Node())
	c.does("nodes set 2 --name zwei --location eu/fra/rack7 --priority 15", "Node 2 is changed")
	c.does("nodes", "zwei", "eu/fra/rack7", "15")
	c.fails("nodes set zwei", "nothing to change")
	c.fails("nodes set zwei --name one", "has it")
	c.fails("nodes set zwei --priority 16", "1, the first choice, to 15")
	c.fails("nodes drain 9", "the nodes are 1 (one), 2 (zwei), 3 (three)")
	c.does("nodes set zwei --priority 8")
	c.does("nodes drain zwei", "is drained")
	c.does("nodes", "up, drained")
	c.does("nodes undrain zwei", "may be primary")
	c.does("buckets move 3 zwei", "is primary of bucket 3")
	c.does("buckets", "32 buckets, 1 moved by hand")
	c.does("buckets --all", "MOVED TO")
	c.fails("buckets move 32 zwei", "0 to 31")
	c.does("buckets unpin 3")
	c.does("buckets double", "64 buckets")
	c.soon("buckets", "64 buckets, 0 moved by hand")
	var list []bucketView
	if err := json.Unmarshal([]byte(c.does("buckets --json")), &list); err != nil || len(list) != 64 {
		t.Errorf("got %d buckets, %v", len(list), err)
	}
	c.does("alerts")
	c.fails("nodes remove zwei", "is up", "--force")

	c.soon("verify", "ok    buckets: all 64")
	c.does("verify", "ok    certificates", "ok    cluster", "ok    node 2 (zwei): up")
	c.soonTimes("nodes --json", `"voter": true`, 3)
	brokertest.Stop(t, daemons[1])
	c.soon("nodes", "no answer")
	out, err := c.run("verify")
	if err == nil || !strings.Contains(out, "FAIL  node 2 (zwei): does not answer. Start its daemon") {
		t.Errorf("got %s, %v", out, err)
	}
	c.does("nodes remove zwei", "is removed")
	if out := c.does("nodes"); strings.Contains(out, "zwei") {
		t.Errorf("got %s", out)
	}
}

// TestAnotherNodeCanBeAsked: the daemon on this machine need not run.
func TestAnotherNodeCanBeAsked(t *testing.T) {
	c, daemons := newCluster(t, "one", "two", "three")
	c.soonTimes("nodes --json", `"voter": true`, 3) // so that the others are more than half
	brokertest.Stop(t, daemons[0])
	c.fails("zone list", "none runs", "--url")
	c.soon("zone list --url "+daemons[1].URL(), "default")
	out, err := c.run("verify")
	if err == nil || !strings.Contains(out, "FAIL  cluster: no daemon answers") || strings.Contains(out, "FAIL  zone") {
		t.Errorf("got %s, %v", out, err)
	}
	c.fails(fmt.Sprintf("nodes --url nats://%s", freeAddress(t)), "no daemon answers")
}

// TestBeforeTheClusterBegins: what the first node's files say is what it begins with.
func TestBeforeTheClusterBegins(t *testing.T) {
	c := newTool(t)
	t.Setenv("OCLOCKS_CLUSTER_LISTEN", "127.0.0.1:0")
	c.does("zone add shop", "oclocks.yaml")
	c.does("user add --zone shop alice")
	c.does("set max_lease 2m", "oclocks.yaml")
	t.Setenv("OCLOCKS_JOIN", "192.0.2.1:6222")
	c.fails("zone add more", "joins a cluster", "--url")
	if err := os.Unsetenv("OCLOCKS_JOIN"); err != nil {
		t.Fatal(err)
	}
}

func TestCommandsThatNeedACluster(t *testing.T) {
	c := newTool(t)
	c.does("zone add shop")
	for _, args := range []string{"nodes", "buckets", "lock", "unlock", "alerts", "buckets double"} {
		c.fails(args, "in no cluster", "oclocks-startup")
	}
	c.fails("set give_up 10s", "in no cluster")
	c.fails("get give_up", "in no cluster")
	c.fails("token", "authentication file")
	t.Setenv("OCLOCKS_CONFIG", "")
	t.Setenv("OCLOCKS_DATA", "")
	c.fails("nodes", "--data")
	c.fails("token", "--data")
}
