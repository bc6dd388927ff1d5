package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/bench/rig"
	"github.com/opencluster/oclocks/broker"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/subjects"
)

const (
	// holderCommand makes this program a client that takes a lock and holds it until it is killed.
	holderCommand = "hold-until-killed"
	kills         = 25
	killGoal      = 100 * time.Millisecond
	killedLock    = "bench/killed"
)

// measureKill measures the time from kill -9 of a process that holds a connection lock with grace 0s to the grant of the
// next waiter, which has one request open and does not poll.
func measureKill(ctx context.Context) ([]table, error) {
	daemon, err := startDaemon(ctx)
	if err != nil {
		return nil, err
	}
	defer stopDaemon(daemon)
	var times []time.Duration
	for range kills {
		took, err := killOnce(ctx, daemon)
		if err != nil {
			return nil, err
		}
		times = append(times, took)
	}
	t := table{Title: "From kill -9 of a holder (grace 0s) to the grant of the next waiter", Columns: []string{"p50", "p90", "max"}}
	t.add(fmt.Sprintf("%d kills", kills), millis(rig.Quantile(times, 0.5)), millis(rig.Quantile(times, 0.9)), millis(rig.Quantile(times, 1)))
	t.note("Goal: %v, typically. The session's lease is 10 s.", killGoal)
	return []table{t}, nil
}

func killOnce(ctx context.Context, daemon *broker.Daemon) (time.Duration, error) {
	l := &locks{buckets: conf.Default().Buckets}
	nc, err := nats.Connect(daemon.URL())
	if err != nil {
		return 0, fmt.Errorf("connect: %w", err)
	}
	defer nc.Close()
	holder, err := startHolder(ctx, daemon.URL())
	if err != nil {
		return 0, err
	}
	type outcome struct {
		key uint64
		at  time.Time
		err error
	}
	granted := make(chan outcome, 1)
	go func() {
		grant, err := l.acquire(nc, &subjects.Request{Name: killedLock, Wait: rig.Patience})
		granted <- outcome{grant.Key, time.Now(), err}
	}()
	if err := awaitWaiter(ctx, l, nc); err != nil {
		return 0, errors.Join(err, holder.Process.Kill())
	}
	begin := time.Now()
	if err := holder.Process.Kill(); err != nil {
		return 0, fmt.Errorf("kill the holder: %w", err)
	}
	got := <-granted
	if err := holder.Wait(); err == nil {
		return 0, errors.New("the holder ended by itself")
	}
	if got.err != nil {
		return 0, got.err
	}
	return got.at.Sub(begin), l.release(nc, killedLock, got.key)
}

// startHolder starts a process that takes the lock, and returns when it has it.
func startHolder(ctx context.Context, url string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, holderCommand, url, killedLock)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a holder: %w", err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "held\n" {
		return nil, errors.Join(fmt.Errorf("the holder said %q: %w", line, err), cmd.Process.Kill(), cmd.Wait())
	}
	return cmd, nil
}

// hold is the holder: url, name.
func hold(args []string) error {
	if len(args) != 2 {
		return errors.New("expected an address and a name")
	}
	nc, err := nats.Connect(args[0])
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer nc.Close()
	session, err := openSession(nc)
	if err != nil {
		return err
	}
	l := &locks{buckets: conf.Default().Buckets}
	if _, err := l.acquire(nc, &subjects.Request{
		Name: args[1], Session: session, Number: 1, Done: 1, Has: subjects.HasGrace, Grace: 0,
	}); err != nil {
		return err
	}
	fmt.Println("held")
	select {} // until it is killed
}

// openSession opens a session that lives on the connection.
func openSession(nc *nats.Conn) (string, error) {
	cid, err := nc.GetClientID()
	if err != nil {
		return "", fmt.Errorf("number of the connection: %w", err)
	}
	req := subjects.Request{Op: subjects.OpSessionOpen, Server: nc.ConnectedServerId(), CID: cid}
	msg, err := nc.Request(subjects.SimpleSubject(subjects.OpSessionOpen, subjects.Anyone), req.AppendJSON(nil), rig.Patience)
	if err != nil {
		return "", fmt.Errorf("session-open: %w", err)
	}
	if refusal, ok := subjects.DecodeRefusal(msg.Data); ok {
		return "", fmt.Errorf("session-open: %w", refusal)
	}
	var opened struct{ Session string }
	if err := json.Unmarshal(msg.Data, &opened); err != nil {
		return "", fmt.Errorf("session-open: %w", err)
	}
	return opened.Session, nil
}

// awaitWaiter returns when somebody waits for the lock.
func awaitWaiter(ctx context.Context, l *locks, nc *nats.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, rig.Patience)
	defer cancel()
	for ctx.Err() == nil {
		body, err := l.ask(nc, &subjects.Request{Op: subjects.OpQuery, Name: killedLock})
		if err != nil {
			return err
		}
		var record struct{ Queue []struct{ Ticket uint64 } }
		if err := json.Unmarshal(body, &record); err != nil {
			return fmt.Errorf("read a query's answer: %w", err)
		}
		if len(record.Queue) > 0 {
			return nil
		}
	}
	return fmt.Errorf("nobody waits: %w", ctx.Err())
}
