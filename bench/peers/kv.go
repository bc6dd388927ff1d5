package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/opencluster/oclocks/bench/rig"
)

const kvSettings = "a key is created or updated by its revision, freed by an update, watched by those who wait; defaults of JetStream"

const kvLacks = "no queue: all waiters are told and one wins; no lease without a time to live of the key; no fencing token by that name " +
	"(the revision can serve)"

var kvMemory = peer{
	Key: "kv-memory", Name: "NATS KV, R3 in memory", Settings: kvSettings, Lacks: kvLacks + "; in memory", lacking: func() error { return nil },
	version: kvVersion,
	start: func(ctx context.Context, dir string) (service, error) {
		return startKV(ctx, dir, jetstream.MemoryStorage)
	},
}

var kvFile = peer{
	Key: "kv-file", Name: "NATS KV, R3 in files", Settings: kvSettings, Lacks: kvLacks, lacking: func() error { return nil },
	version: kvVersion,
	start: func(ctx context.Context, dir string) (service, error) {
		return startKV(ctx, dir, jetstream.FileStorage)
	},
}

func kvVersion(context.Context) string {
	return "nats-server " + server.VERSION + ", nats.go " + nats.Version
}

const kvBucket = "locks"

type kvService struct {
	tried
	servers []*rig.Child
	conns   []*nats.Conn
	streams jetstream.JetStream
	buckets []jetstream.KeyValue
}

func startKV(ctx context.Context, dir string, storage jetstream.StorageType) (_ service, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	const n = 3
	addresses, err := rig.FreeAddresses(2 * n)
	if err != nil {
		return nil, err
	}
	s := &kvService{}
	defer func() {
		if err != nil {
			s.Stop()
		}
	}()
	for i := range n {
		c, err := rig.Spawn(exec.Command(self, streamsCommand, strconv.Itoa(i), addresses[i], addresses[n+i], strings.Join(addresses[n:], ","),
			filepath.Join(dir, strconv.Itoa(i))), filepath.Join(dir, fmt.Sprint(i, ".log")), streamsServing)
		if err != nil {
			return nil, fmt.Errorf("start a NATS server: %w", err)
		}
		s.servers = append(s.servers, c)
	}
	for _, c := range s.servers {
		if err := c.Serving(ctx); err != nil {
			return nil, err
		}
	}
	for i := range connections {
		urls := append(append([]string{}, addresses[i%n:n]...), addresses[:i%n]...)
		nc, err := nats.Connect(strings.Join(urls, ","), nats.DontRandomize(), nats.MaxReconnects(-1))
		if err != nil {
			return nil, fmt.Errorf("connect: %w", err)
		}
		s.conns = append(s.conns, nc)
	}
	return s, s.open(ctx, storage)
}

// open makes the bucket as soon as the servers have a leader.
func (s *kvService) open(ctx context.Context, storage jetstream.StorageType) (err error) {
	ctx, cancel := context.WithTimeout(ctx, 3*rig.Patience)
	defer cancel()
	if s.streams, err = jetstream.New(s.conns[0]); err != nil {
		return err
	}
	var last error
	err = rig.Await(ctx, func() (bool, error) {
		asking, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		_, last = s.streams.CreateOrUpdateKeyValue(asking, jetstream.KeyValueConfig{Bucket: kvBucket, Replicas: 3, Storage: storage})
		return last == nil, nil
	})
	if err != nil {
		return fmt.Errorf("make the bucket: %w: %w", err, last)
	}
	for _, nc := range s.conns {
		js, err := jetstream.New(nc)
		if err != nil {
			return err
		}
		kv, err := js.KeyValue(ctx, kvBucket)
		if err != nil {
			return fmt.Errorf("open the bucket: %w", err)
		}
		s.buckets = append(s.buckets, kv)
	}
	return nil
}

func (s *kvService) Worker(_ context.Context, n int) (worker, error) {
	return &kvWorker{service: s, bucket: s.buckets[n%len(s.buckets)], id: fmt.Appendf(nil, "worker %d", n), free: make(map[string]uint64)}, nil
}

func (s *kvService) Victim(ctx context.Context) (*rig.Child, error) {
	stream, err := s.streams.Stream(ctx, "KV_"+kvBucket)
	if err != nil {
		return nil, err
	}
	info, err := stream.Info(ctx)
	if err != nil {
		return nil, err
	}
	i, err := strconv.Atoi(strings.TrimPrefix(info.Cluster.Leader, "streams-"))
	if err != nil {
		return nil, fmt.Errorf("the stream's leader is %q: %w", info.Cluster.Leader, err)
	}
	return s.servers[i], nil
}

func (s *kvService) Stop() {
	for _, nc := range s.conns {
		nc.Close()
	}
	killAll(s.servers)
}

type kvWorker struct {
	service  *kvService
	bucket   jetstream.KeyValue
	id       []byte
	name     string
	revision uint64
	free     map[string]uint64 // the revision with which this worker has freed a lock
}

func (w *kvWorker) Lock(ctx context.Context, name string) error {
	w.name = strings.ReplaceAll(name, " ", "-")
	taken, err := w.try(ctx, w.free[w.name])
	if taken || err != nil {
		return err
	}
	watcher, err := w.bucket.Watch(ctx, w.name)
	if err != nil {
		return fmt.Errorf("watch %s: %w", w.name, err)
	}
	defer func() { _ = watcher.Stop() }() // nobody reads it any more
	w.service.found(name)
	freed := uint64(0) // the revision since which it may be free
	again := time.NewTicker(kvAgain)
	defer again.Stop()
	for {
		select {
		case e, open := <-watcher.Updates():
			if !open {
				return errors.New("the watch ended")
			}
			if e == nil {
				continue
			}
			if freed = e.Revision(); len(e.Value()) > 0 {
				freed = 0
				continue
			}
			if taken, err := w.try(ctx, freed); taken || err != nil {
				return err
			}
		case <-again.C:
			if freed == 0 {
				continue
			}
			if taken, err := w.try(ctx, freed); taken || err != nil {
				return err
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// try takes the lock if it is free since that revision, or, if that is 0, if nobody has had it yet.
func (w *kvWorker) try(ctx context.Context, since uint64) (taken bool, err error) {
	if since == 0 {
		w.revision, err = w.bucket.Create(ctx, w.name, w.id)
	} else {
		w.revision, err = w.bucket.Update(ctx, w.name, w.id, since)
	}
	if errors.Is(err, jetstream.ErrKeyExists) || errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
		return false, nil
	}
	return err == nil, err
}

// Unlock may be told of a wrong revision just because the server has not quite done with the one before: nobody else writes
// while the lock is held, so it is asked again.
func (w *kvWorker) Unlock(ctx context.Context) (err error) {
	for range kvTries {
		w.free[w.name], err = w.bucket.Update(ctx, w.name, nil, w.revision)
		if !errors.Is(err, jetstream.ErrKeyRevisionMismatch) {
			break
		}
	}
	return err
}

const (
	kvTries = 10
	kvAgain = 50 * time.Millisecond // so long an update that said nothing but "in process" may have been the last
)

func (w *kvWorker) Close() {}

// The processes of the servers.
const (
	streamsCommand = "nats-streams"
	streamsServing = "the server with streams serves"
)
