package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/opencluster/oclocks/bench/rig"
)

const (
	redisInstall = "apt-get install redis-server"
	redisLease   = 10 * time.Second
	redisPool    = 64 // connections: fewer leave workers idle while WAIT blocks theirs
)

var redisAlone = peer{
	Key: "redis", Name: "Redis, one server",
	Settings: "SET NX PX and a script that compares and deletes; nothing on disk; polled every 50 to 250 ms, as redsync does",
	Lacks:    "not replicated; no queue: waiters poll and starve; no fencing token; the lock ends while its holder works",
	lacking:  lackingRedis,
	version:  redisVersion,
	start: func(ctx context.Context, dir string) (service, error) {
		return startRedis(ctx, dir, 0)
	},
}

var redisReplicated = peer{
	Key: "redis-wait", Name: "Redis + replica, WAIT 1",
	Settings: "the same, and WAIT 1 in one round trip with SET; the release does not wait",
	Lacks:    "no fail-over by itself, and with one (Sentinel) locks can be lost; no queue; no fencing token",
	lacking:  lackingRedis,
	version:  redisVersion,
	start: func(ctx context.Context, dir string) (service, error) {
		return startRedis(ctx, dir, 1)
	},
}

func lackingRedis() error {
	_, err := needs("redis-server", redisInstall)
	return err
}

func redisVersion(ctx context.Context) string { return printed(ctx, "redis-server", "--version") }

// redisServer starts one Redis.
func redisServer(ctx context.Context, dir, address string, args ...string) (*rig.Child, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	all := append([]string{"--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "", "--appendonly", "no"}, args...)
	c, err := rig.Spawn(exec.Command("redis-server", all...), filepath.Join(dir, "log"), "Ready to accept connections")
	if err != nil {
		return nil, fmt.Errorf("start redis-server: %w", err)
	}
	return c, c.Serving(ctx)
}

// redisServers starts independent ones.
func redisServers(ctx context.Context, dir string, n int) (children []*rig.Child, addresses []string, err error) {
	if addresses, err = rig.FreeAddresses(n); err != nil {
		return nil, nil, err
	}
	for i, a := range addresses {
		c, err := redisServer(ctx, filepath.Join(dir, strconv.Itoa(i)), a)
		if err != nil {
			killAll(children)
			return nil, nil, err
		}
		children = append(children, c)
	}
	return children, addresses, nil
}

func killAll(all []*rig.Child) {
	for _, c := range all {
		c.Kill()
	}
}

type redisService struct {
	tried
	servers  []*rig.Child
	client   *redis.Client
	replicas int
}

func startRedis(ctx context.Context, dir string, replicas int) (_ service, err error) {
	s := &redisService{replicas: replicas}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	addresses, err := rig.FreeAddresses(1 + replicas)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(addresses[0])
	if err != nil {
		return nil, err
	}
	for i, a := range addresses {
		var args []string
		if i > 0 {
			args = []string{"--replicaof", host, port}
		}
		c, err := redisServer(ctx, filepath.Join(dir, strconv.Itoa(i)), a, args...)
		if err != nil {
			return nil, err
		}
		s.servers = append(s.servers, c)
	}
	s.client = redis.NewClient(&redis.Options{Addr: addresses[0], PoolSize: redisPool})
	return s, rig.Await(ctx, func() (bool, error) {
		n, err := s.client.Wait(ctx, replicas, rig.LookPause).Result()
		return err == nil && n == int64(replicas), err
	})
}

func (s *redisService) Worker(_ context.Context, n int) (worker, error) {
	return &redisWorker{service: s, id: fmt.Sprint("worker ", n)}, nil
}

func (s *redisService) Victim(context.Context) (*rig.Child, error) { return s.servers[0], nil }

func (s *redisService) Stop() {
	if s.client != nil {
		_ = s.client.Close() // the servers go too
	}
	killAll(s.servers)
}

var redisRelease = redis.NewScript(`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`)

type redisWorker struct {
	service  *redisService
	id, name string
}

func (w *redisWorker) Lock(ctx context.Context, name string) error {
	err := w.service.poll(ctx, name, func() (bool, error) { return w.try(ctx, name) })
	if err == nil {
		w.name = name
	}
	return err
}

func (w *redisWorker) try(ctx context.Context, name string) (bool, error) {
	s := w.service
	if s.replicas == 0 {
		return setNX(s.client.SetArgs(ctx, name, w.id, redis.SetArgs{Mode: "NX", TTL: redisLease}))
	}
	pipe := s.client.Pipeline()
	set := pipe.SetArgs(ctx, name, w.id, redis.SetArgs{Mode: "NX", TTL: redisLease})
	wait := pipe.Do(ctx, "WAIT", s.replicas, rig.Patience.Milliseconds())
	if _, err := pipe.Exec(ctx); err != nil && !errors.Is(err, redis.Nil) {
		return false, err
	}
	if done, err := setNX(set); !done || err != nil {
		return false, err
	}
	n, err := wait.Int()
	if err == nil && n < s.replicas {
		err = fmt.Errorf("%d of %d replicas have it", n, s.replicas)
	}
	return err == nil, err
}

// setNX reads the answer to SET NX.
func setNX(cmd *redis.StatusCmd) (bool, error) {
	err := cmd.Err()
	if errors.Is(err, redis.Nil) {
		return false, nil
	}
	return err == nil, err
}

func (w *redisWorker) Unlock(ctx context.Context) error {
	n, err := redisRelease.Run(ctx, w.service.client, []string{w.name}, w.id).Int()
	if err == nil && n != 1 {
		err = fmt.Errorf("%s was lost", w.name)
	}
	return err
}

func (w *redisWorker) Close() {}
