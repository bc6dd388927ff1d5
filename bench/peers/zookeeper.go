package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/opencluster/oclocks/bench/rig"
)

const zookeeperInstall = "apt-get install zookeeper default-jre-headless"

var zookeeperPeer = peer{
	Key: "zookeeper", Name: "ZooKeeper, 3 nodes",
	Settings: "the lock recipe of github.com/go-zookeeper/zk; defaults: forceSync; a heap of 512 MiB for each node",
	Lacks:    "no fencing token by that name (the znode's zxid can serve); a lock leaves its parent znode behind for ever",
	lacking: func() error {
		if _, err := needs("java", zookeeperInstall); err != nil {
			return err
		}
		_, err := zookeeperJar()
		return err
	},
	version: func(ctx context.Context) string {
		jar, err := zookeeperJar()
		if err != nil {
			return err.Error()
		}
		return strings.TrimSuffix(filepath.Base(jar), ".jar") + ", " + printed(ctx, "java", "-version")
	},
	start: startZookeeper,
}

func zookeeperJar() (string, error) {
	found, err := filepath.Glob("/usr/share/java/zookeeper-3*.jar")
	if err != nil || len(found) == 0 {
		return "", missing{"/usr/share/java/zookeeper-3*.jar", zookeeperInstall}
	}
	return slices.Max(found), nil
}

type zookeeperService struct {
	nodes   []*rig.Child
	clients []*zk.Conn
	addrs   []string
}

func startZookeeper(ctx context.Context, dir string) (_ service, err error) {
	jar, err := zookeeperJar()
	if err != nil {
		return nil, err
	}
	const n = 3
	addresses, err := rig.FreeAddresses(3 * n)
	if err != nil {
		return nil, err
	}
	s := &zookeeperService{addrs: addresses[:n]}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	for i := range n {
		home := filepath.Join(dir, fmt.Sprint("n", i))
		if err := zookeeperHome(home, i, addresses); err != nil {
			return nil, err
		}
		cmd := exec.Command("java", "-Xms512m", "-Xmx512m", "-Dzookeeper.admin.enableServer=false", "-Dzookeeper.4lw.commands.whitelist=srvr",
			"-cp", jar, "org.apache.zookeeper.server.quorum.QuorumPeerMain", filepath.Join(home, "zoo.cfg"))
		c, err := rig.Spawn(cmd, home+".log", "")
		if err != nil {
			return nil, fmt.Errorf("start zookeeper: %w", err)
		}
		s.nodes = append(s.nodes, c)
	}
	starting, cancel := context.WithTimeout(ctx, 3*rig.Patience)
	defer cancel()
	if err := rig.Await(starting, func() (bool, error) { return s.serving(), nil }); err != nil {
		return nil, fmt.Errorf("zookeeper does not serve: %w", err)
	}
	for i := range connections {
		c, _, err := zk.Connect(append(slices.Clone(s.addrs[i%n:]), s.addrs[:i%n]...), 10*time.Second, zk.WithLogger(quietLog{}), zk.WithHostProvider(&inTurn{}))
		if err != nil {
			return nil, err
		}
		s.clients = append(s.clients, c)
	}
	return s, nil
}

// inTurn begins with the first server and not with a random one, so that connections are spread.
type inTurn struct {
	servers   []string
	next, bad int
}

func (t *inTurn) Init(servers []string) error { t.servers = servers; return nil }
func (t *inTurn) Len() int                    { return len(t.servers) }
func (t *inTurn) Next() (string, bool) {
	server := t.servers[t.next%len(t.servers)]
	t.next++
	t.bad++
	return server, t.bad > len(t.servers)
}
func (t *inTurn) Connected() { t.bad = 0 }

// zookeeperHome writes the files of one node. addresses: for clients, among the nodes, for elections.
func zookeeperHome(home string, i int, addresses []string) error {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	n := len(addresses) / 3
	text := fmt.Sprintf("tickTime=2000\ninitLimit=10\nsyncLimit=5\nmaxClientCnxns=0\ndataDir=%s\n", home)
	for k := range n {
		_, client, err := net.SplitHostPort(addresses[k])
		if err != nil {
			return err
		}
		_, among, err := net.SplitHostPort(addresses[n+k])
		if err != nil {
			return err
		}
		_, election, err := net.SplitHostPort(addresses[2*n+k])
		if err != nil {
			return err
		}
		text += fmt.Sprintf("server.%d=127.0.0.1:%s:%s;127.0.0.1:%s\n", k+1, among, election, client)
	}
	if err := os.WriteFile(filepath.Join(home, "zoo.cfg"), []byte(text), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(home, "myid"), fmt.Append(nil, i+1), 0o600)
}

// modes has what each node says it is: leader, follower, or nothing.
func (s *zookeeperService) modes() []string {
	var all []string
	for _, a := range s.addrs {
		mode, _ := zookeeperMode(a) // it does not serve yet
		all = append(all, mode)
	}
	return all
}

func zookeeperMode(address string) (string, error) {
	c, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return "", err
	}
	if _, err := c.Write([]byte("srvr")); err != nil {
		return "", err
	}
	text, err := io.ReadAll(c)
	_, rest, _ := strings.Cut(string(text), "\nMode: ")
	mode, _, _ := strings.Cut(rest, "\n")
	return mode, err
}

func (s *zookeeperService) serving() bool {
	m := s.modes()
	return slices.Contains(m, "leader") && !slices.Contains(m, "")
}

func (s *zookeeperService) Worker(_ context.Context, n int) (worker, error) {
	return &zookeeperWorker{conn: s.clients[n%len(s.clients)]}, nil
}

func zookeeperPath(name string) string { return "/" + strings.ReplaceAll(name, "/", "-") }

func (s *zookeeperService) Waiting(_ context.Context, name string) (int, error) {
	children, _, err := s.clients[0].Children(zookeeperPath(name))
	return len(children) - 1, err
}

func (s *zookeeperService) Victim(context.Context) (*rig.Child, error) {
	i := slices.Index(s.modes(), "leader")
	if i < 0 {
		return nil, errors.New("zookeeper has no leader")
	}
	return s.nodes[i], nil
}

func (s *zookeeperService) Stop() {
	for _, c := range s.clients {
		c.Close()
	}
	killAll(s.nodes)
}

type zookeeperWorker struct {
	conn *zk.Conn
	lock *zk.Lock
}

// Lock cannot be given up: the recipe knows no context.
func (w *zookeeperWorker) Lock(_ context.Context, name string) error {
	w.lock = zk.NewLock(w.conn, zookeeperPath(name), zk.WorldACL(zk.PermAll))
	return w.lock.Lock()
}

func (w *zookeeperWorker) Unlock(context.Context) error { return w.lock.Unlock() }

func (w *zookeeperWorker) Close() {}
