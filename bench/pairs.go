package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/bench/rig"
	"github.com/opencluster/oclocks/broker"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/subjects"
)

// measurePairs measures acquire and release through a daemon in this process, over TCP on loopback, next to the same
// number of plain requests and replies of NATS.
func measurePairs(ctx context.Context) ([]table, error) {
	plain, err := startEcho()
	if err != nil {
		return nil, err
	}
	defer plain.stop()
	daemon, err := startDaemon(ctx)
	if err != nil {
		return nil, err
	}
	defer stopDaemon(daemon)
	locks := &locks{buckets: conf.Default().Buckets}

	latency := table{Title: "A pair of acquire and release, one worker", Columns: []string{"p50", "p99", "/ NATS"}}
	through := table{Title: "Pairs a second, each worker with a lock of its own",
		Columns: []string{"NATS alone", "protocol", "Go client", "protocol / NATS", "client / NATS"}}
	for _, workers := range []int{1, 64, 256} {
		raw, err := overNATS(ctx, plain.url(), workers, plain.pair)
		if err != nil {
			return nil, fmt.Errorf("NATS alone, %d workers: %w", workers, err)
		}
		bare, err := overNATS(ctx, daemon.URL(), workers, locks.pair)
		if err != nil {
			return nil, fmt.Errorf("protocol, %d workers: %w", workers, err)
		}
		full, err := overClient(ctx, daemon.URL(), workers)
		if err != nil {
			return nil, fmt.Errorf("client, %d workers: %w", workers, err)
		}
		through.add(strconv.Itoa(workers)+" workers", rate(raw.rate()), rate(bare.rate()), rate(full.rate()),
			ratio(bare.rate()/raw.rate()), ratio(full.rate()/raw.rate()))
		if workers == 1 {
			base := rig.Quantile(raw.times, 0.5)
			latency.addTimes("NATS alone, two requests", raw, base)
			latency.addTimes("protocol", bare, base)
			latency.addTimes("Go client", full, base)
		}
	}
	latency.note("Protocol: what docs/protocol.md says on the hot path, without a session. Go client: Mutex.Lock and Unlock,")
	latency.note("a session with fencing, keep-alives and requests that take effect at most once.")
	through.note("%d connections at most; client, broker and NATS share the processors of this machine.", connections)
	return []table{latency, through}, nil
}

func (t *table) addTimes(name string, r result, base time.Duration) {
	p50 := rig.Quantile(r.times, 0.5)
	t.add(name, micros(p50), micros(rig.Quantile(r.times, 0.99)), ratio(float64(p50)/float64(base)))
}

// startDaemon starts a broker in development mode that keeps nothing on disk.
func startDaemon(ctx context.Context) (*broker.Daemon, error) {
	settings := conf.Default()
	settings.Listen, settings.HTTP = "127.0.0.1:0", "off"
	daemon, err := broker.Start(ctx, broker.Config{Settings: settings, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, fmt.Errorf("start a daemon: %w", err)
	}
	return daemon, nil
}

func stopDaemon(daemon *broker.Daemon) {
	ctx, cancel := context.WithTimeout(context.Background(), rig.Patience)
	defer cancel()
	if err := daemon.Stop(ctx); err != nil {
		slog.Error("stop the daemon", "error", err)
	}
}

// locks speaks the protocol itself without our client, on the hot path or on the simple one.
type locks struct {
	buckets uint32
	simple  bool
	user    string // "": anyone
}

// name is the lock of a worker.
func (l *locks) name(worker int) string { return "bench/" + strconv.Itoa(worker) }

func (l *locks) pair(nc *nats.Conn, worker int) error {
	name := l.name(worker)
	grant, err := l.acquire(nc, &subjects.Request{Name: name})
	if err != nil {
		return err
	}
	return l.release(nc, name, grant.Key)
}

// timed takes a lock and gives it back, and tells how long it took to take it.
func (l *locks) timed(nc *nats.Conn, name string) (time.Duration, error) {
	begin := time.Now()
	grant, err := l.acquire(nc, &subjects.Request{Name: name})
	if err != nil {
		return 0, err
	}
	took := time.Since(begin)
	return took, l.release(nc, name, grant.Key)
}

func (l *locks) acquire(nc *nats.Conn, req *subjects.Request) (subjects.Grant, error) {
	req.Op = subjects.OpAcquire
	body, err := l.ask(nc, req)
	if err != nil {
		return subjects.Grant{}, err
	}
	var grant subjects.Grant
	if err := grant.DecodeJSON(body); err != nil {
		return subjects.Grant{}, fmt.Errorf("read the grant: %w", err)
	}
	return grant, nil
}

func (l *locks) release(nc *nats.Conn, name string, key uint64) error {
	_, err := l.ask(nc, &subjects.Request{Op: subjects.OpRelease, Name: name, Key: key, Has: subjects.HasKey})
	return err
}

func (l *locks) ask(nc *nats.Conn, req *subjects.Request) ([]byte, error) {
	user := cmp.Or(l.user, subjects.Anyone)
	subject := subjects.SimpleSubject(req.Op, user)
	if !l.simple {
		subject = subjects.HotSubject(subjects.BucketOf(req.Name, l.buckets), req.Op, user)
	}
	msg, err := nc.Request(subject, req.AppendJSON(nil), rig.Patience)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", req.Op, req.Name, err)
	}
	if refusal, ok := subjects.DecodeRefusal(msg.Data); ok {
		return nil, fmt.Errorf("%s %s: %w", req.Op, req.Name, refusal)
	}
	return msg.Data, nil
}
