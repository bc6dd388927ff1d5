package main

import (
	"context"
	"time"

	"github.com/go-redsync/redsync/v4"
	redsyncpool "github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/opencluster/oclocks/bench/rig"
)

var redsyncPeer = peer{
	Key: "redsync", Name: "redsync over 3 Redis",
	Settings: "defaults of redsync, but no limit of tries; three independent servers, nothing on disk",
	Lacks: "safe only if clocks and pauses are bounded, and if no server forgets (here nothing is on disk); no queue; " +
		"no fencing token; the lock ends while its holder works",
	lacking: lackingRedis,
	version: func(ctx context.Context) string {
		return "redsync " + moduleVersion("github.com/go-redsync/redsync/v4") + ", " + redisVersion(ctx)
	},
	start: startRedsync,
}

type redsyncService struct {
	tried
	servers []*rig.Child
	clients []*redis.Client
	sync    *redsync.Redsync
}

func startRedsync(ctx context.Context, dir string) (service, error) {
	children, addresses, err := redisServers(ctx, dir, 3)
	if err != nil {
		return nil, err
	}
	s := &redsyncService{servers: children}
	var pools []redsyncpool.Pool
	for _, a := range addresses {
		c := redis.NewClient(&redis.Options{Addr: a, PoolSize: redisPool})
		s.clients = append(s.clients, c)
		pools = append(pools, goredis.NewPool(c))
	}
	s.sync = redsync.New(pools...)
	return s, nil
}

func (s *redsyncService) Worker(context.Context, int) (worker, error) {
	return &redsyncWorker{service: s}, nil
}

func (s *redsyncService) Victim(context.Context) (*rig.Child, error) { return s.servers[0], nil }

func (s *redsyncService) Stop() {
	for _, c := range s.clients {
		_ = c.Close() // the servers go too
	}
	killAll(s.servers)
}

type redsyncWorker struct {
	service *redsyncService
	mutex   *redsync.Mutex
}

func (w *redsyncWorker) Lock(ctx context.Context, name string) error {
	w.mutex = w.service.sync.NewMutex(name, redsync.WithTries(1<<30), redsync.WithRetryDelayFunc(func(tries int) time.Duration {
		if tries == 1 {
			w.service.found(name)
		}
		return redsyncPause()
	}))
	return w.mutex.LockContext(ctx)
}

func (w *redsyncWorker) Unlock(ctx context.Context) error {
	_, err := w.mutex.UnlockContext(ctx)
	return err
}

func (w *redsyncWorker) Close() {}
