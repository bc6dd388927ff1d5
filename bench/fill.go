package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/bench/rig"
	"github.com/opencluster/oclocks/subjects"
)

// underWay is how many requests each connection has without an answer while locks are taken that are then held.
const underWay = 1024

// fill takes locks until n are held. It does not wait for one answer before the next request, or ten million would take
// minutes.
func (h *held) fill(ctx context.Context, url string, n int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	conns, err := connect(url, connections)
	if err != nil {
		return err
	}
	defer closeAll(conns)
	from := len(h.keys)
	h.keys = append(h.keys, make([]uint64, n-from)...)
	var group sync.WaitGroup
	for c, nc := range conns {
		group.Go(func() {
			if err := h.fillOver(ctx, nc, from+c, len(conns)); err != nil {
				cancel(err)
			}
		})
	}
	group.Wait()
	return context.Cause(ctx)
}

// fillOver takes every step-th lock over one connection. A reply's subject ends with the number of its lock.
func (h *held) fillOver(ctx context.Context, nc *nats.Conn, from, step int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	inbox := nats.NewInbox() + "."
	free := make(chan struct{}, underWay) // a token for each request that may be under way
	for range underWay {
		free <- struct{}{}
	}
	sub, err := nc.Subscribe(inbox+"*", func(m *nats.Msg) {
		if err := h.filled(strings.TrimPrefix(m.Subject, inbox), m.Data); err != nil {
			cancel(err)
		}
		free <- struct{}{}
	})
	if err != nil {
		return fmt.Errorf("subscribe to the grants: %w", err)
	}
	var body []byte
	for i := from; i < len(h.keys); i += step {
		if err := take(ctx, free); err != nil {
			return err
		}
		req := h.request(i)
		body = req.AppendJSON(body[:0])
		subject := subjects.HotSubject(subjects.BucketOf(req.Name, h.buckets), req.Op, subjects.Anyone)
		if err := nc.PublishRequest(subject, inbox+strconv.Itoa(i), body); err != nil {
			return fmt.Errorf("ask for lock %d: %w", i, err)
		}
	}
	for range underWay { // all are answered
		if err := take(ctx, free); err != nil {
			return err
		}
	}
	return sub.Unsubscribe()
}

// take waits for a token, for as long as patience lasts.
func take(ctx context.Context, free <-chan struct{}) error {
	select {
	case <-free:
		return context.Cause(ctx)
	default:
	}
	timer := time.NewTimer(rig.Patience)
	defer timer.Stop()
	select {
	case <-free:
		return context.Cause(ctx)
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return fmt.Errorf("no grant came for %v", rig.Patience)
	}
}

// filled keeps the key of a grant.
func (h *held) filled(number string, body []byte) error {
	i, err := strconv.Atoi(number)
	if err != nil {
		return fmt.Errorf("a grant of no lock: %w", err)
	}
	if refusal, ok := subjects.DecodeRefusal(body); ok {
		return fmt.Errorf("lock %d: %w", i, refusal)
	}
	var grant subjects.Grant
	if err := grant.DecodeJSON(body); err != nil {
		return fmt.Errorf("read the grant of lock %d: %w", i, err)
	}
	h.keys[i] = grant.Key
	return nil
}
