package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"

	"github.com/opencluster/oclocks/bench/rig"
)

const (
	etcdModule  = "go.etcd.io/etcd/server/v3"
	etcdVersion = "v3.7.3"
	etcdLacks   = "no fencing token by that name (the key's revision can serve); the mutex's lease is for all locks of a session"
)

var etcdSynced = peer{
	Key: "etcd", Name: "etcd, 3 nodes",
	Settings: "concurrency.Mutex, a session of 60 s for each worker; defaults: fsync before the answer",
	Lacks:    etcdLacks, lacking: lackingEtcd, version: etcdVersions,
	start: func(ctx context.Context, dir string) (service, error) { return startEtcd(ctx, dir) },
}

var etcdUnsynced = peer{
	Key: "etcd-nofsync", Name: "etcd, 3 nodes, --unsafe-no-fsync",
	Settings: "the same without fsync, as oclocks' default is",
	Lacks:    etcdLacks + "; its makers call this unsafe", lacking: lackingEtcd, version: etcdVersions,
	start: func(ctx context.Context, dir string) (service, error) {
		return startEtcd(ctx, dir, "--unsafe-no-fsync")
	},
}

func etcdVersions(context.Context) string { return "etcd " + etcdVersion }

func lackingEtcd() error {
	_, err := buildEtcd()
	return err
}

// buildEtcd builds the server from the module proxy. The binary is kept for the next time.
var buildEtcd = sync.OnceValues(func() (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "oclocks-tools", "etcd-"+etcdVersion)
	path := filepath.Join(dir, "etcd")
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	scratch, err := os.MkdirTemp("", "oclocks-bench")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch) // it is in the temporary directory
	mod := fmt.Sprintf("module etcd\n\ngo 1.26.0\n\nrequire %s %s\n", etcdModule, etcdVersion)
	if err := os.WriteFile(filepath.Join(scratch, "go.mod"), []byte(mod), 0o600); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-mod=mod", "-o", path, etcdModule)
	build.Dir = scratch
	if out, err := build.CombinedOutput(); err != nil {
		return "", missing{"etcd", fmt.Sprintf("go build -mod=mod %s@%s fails: %v\n%s", etcdModule, etcdVersion, err, out)}
	}
	return path, nil
})

type etcdService struct {
	nodes     []*rig.Child
	endpoints []string
	clients   []*clientv3.Client
}

func startEtcd(ctx context.Context, dir string, args ...string) (_ service, err error) {
	path, err := buildEtcd()
	if err != nil {
		return nil, err
	}
	const n = 3
	addresses, err := rig.FreeAddresses(2 * n)
	if err != nil {
		return nil, err
	}
	s := &etcdService{}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	var cluster []string
	for i := range n {
		s.endpoints = append(s.endpoints, "http://"+addresses[i])
		cluster = append(cluster, fmt.Sprintf("n%d=http://%s", i, addresses[n+i]))
	}
	for i := range n {
		name, peer := fmt.Sprint("n", i), "http://"+addresses[n+i]
		all := append([]string{"--name", name, "--data-dir", filepath.Join(dir, name), "--listen-client-urls", s.endpoints[i],
			"--advertise-client-urls", s.endpoints[i], "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
			"--initial-cluster", strings.Join(cluster, ","), "--log-level", "info"}, args...)
		c, err := rig.Spawn(exec.Command(path, all...), filepath.Join(dir, name+".log"), "ready to serve client requests")
		if err != nil {
			return nil, fmt.Errorf("start etcd: %w", err)
		}
		s.nodes = append(s.nodes, c)
	}
	for _, c := range s.nodes {
		if err := c.Serving(ctx); err != nil {
			return nil, err
		}
	}
	for i := range connections {
		c, err := clientv3.New(clientv3.Config{Endpoints: append(s.endpoints[i%n:n:n], s.endpoints[:i%n]...), Context: context.WithoutCancel(ctx), Logger: zap.NewNop()})
		if err != nil {
			return nil, err
		}
		s.clients = append(s.clients, c)
	}
	return s, nil
}

func (s *etcdService) Worker(_ context.Context, n int) (worker, error) {
	session, err := concurrency.NewSession(s.clients[n%len(s.clients)])
	if err != nil {
		return nil, err
	}
	return &etcdWorker{session: session}, nil
}

// Waiting is all who have a key below the lock's, but for the holder.
func (s *etcdService) Waiting(ctx context.Context, name string) (int, error) {
	r, err := s.clients[0].Get(ctx, etcdPrefix(name)+"/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil {
		return 0, err
	}
	return int(r.Count) - 1, nil
}

func (s *etcdService) Victim(ctx context.Context) (*rig.Child, error) {
	for i, e := range s.endpoints {
		st, err := s.clients[0].Status(ctx, e)
		if err != nil {
			return nil, err
		}
		if st.Leader == st.Header.MemberId {
			return s.nodes[i], nil
		}
	}
	return nil, fmt.Errorf("etcd has no leader")
}

func (s *etcdService) Stop() {
	for _, c := range s.clients {
		_ = c.Close() // the servers go too
	}
	killAll(s.nodes)
}

func etcdPrefix(name string) string { return "/bench/" + name }

type etcdWorker struct {
	session *concurrency.Session
	mutex   *concurrency.Mutex
}

func (w *etcdWorker) Lock(ctx context.Context, name string) error {
	w.mutex = concurrency.NewMutex(w.session, etcdPrefix(name))
	return w.mutex.Lock(ctx)
}

func (w *etcdWorker) Unlock(ctx context.Context) error { return w.mutex.Unlock(ctx) }

func (w *etcdWorker) Close() { w.session.Orphan() } // the servers go too
