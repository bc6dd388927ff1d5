package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/bench/rig"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/subjects"
)

const (
	manySessions = 100_000
	sessionConns = 300 // connections that they share, so few that one machine can have them and so many that hardly any two messages travel together
	sessionPace  = time.Millisecond
)

// sessions are very many of them, which say what the Go client says, each for itself: it opens one, takes a lock in it, and keeps it
// alive at the node that has given the lock.
type sessions struct {
	lease   time.Duration
	buckets uint32
	conns   []*sessionConn
	all     []oneSession

	asks     func(i int) error // what is asked
	answered atomic.Int64
	mu       sync.Mutex
	failed   error // the first
}

// askAgain is after what time a request is repeated that nobody could take.
const askAgain = 200 * time.Millisecond

type sessionConn struct {
	*nats.Conn
	cid   uint64
	inbox string
}

// oneSession is changed by the answers only, of which there is one at a time.
type oneSession struct {
	token, node string
	key, beat   uint64
}

// connectSessions makes the connections, in turn to all nodes.
func connectSessions(d *rig.Daemons, lease time.Duration) (s *sessions, err error) {
	s = &sessions{lease: lease, buckets: conf.Default().Buckets, all: make([]oneSession, manySessions)}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	for i := range sessionConns {
		nc, err := d.Only(i % len(d.Nodes))
		if err != nil {
			return nil, err
		}
		c := &sessionConn{Conn: nc, inbox: nats.NewInbox() + "."}
		s.conns = append(s.conns, c)
		if c.cid, err = nc.GetClientID(); err != nil {
			return nil, err
		}
		if _, err := nc.Subscribe(c.inbox+"*.*", func(m *nats.Msg) { s.take(strings.TrimPrefix(m.Subject, c.inbox), m) }); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *sessions) close() {
	for _, c := range s.conns {
		c.Close()
	}
}

// name is the lock of a session.
func (s *sessions) name(i int) string { return "session/" + strconv.Itoa(i) }

func (s *sessions) conn(i int) *sessionConn { return s.conns[i%len(s.conns)] }

// ask sends a request of the i-th session. The reply's subject ends with the operation and the session's number.
func (s *sessions) ask(i int, subject string, req *subjects.Request) error {
	c := s.conn(i)
	return c.PublishRequest(subject, c.inbox+req.Op.String()+"."+strconv.Itoa(i), req.AppendJSON(nil))
}

func (s *sessions) open(i int) error {
	return s.ask(i, subjects.SimpleSubject(subjects.OpSessionOpen, subjects.Anyone), &subjects.Request{Op: subjects.OpSessionOpen,
		Server: s.conn(i).ConnectedServerId(), CID: s.conn(i).cid, Has: subjects.HasTTL, TTL: s.lease})
}

func (s *sessions) acquire(i int) error {
	req := &subjects.Request{Op: subjects.OpAcquire, Name: s.name(i), Session: s.all[i].token, Number: 1, Done: 1, Kind: subjects.Connection}
	return s.ask(i, subjects.HotSubject(subjects.BucketOf(req.Name, s.buckets), req.Op, subjects.Anyone), req)
}

func (s *sessions) release(i int) error {
	req := &subjects.Request{Op: subjects.OpRelease, Name: s.name(i), Session: s.all[i].token, Number: 2, Done: 2, Key: s.all[i].key, Has: subjects.HasKey}
	return s.ask(i, subjects.HotSubject(subjects.BucketOf(req.Name, s.buckets), req.Op, subjects.Anyone), req)
}

// keep is the keep-alive of a session that has a lock.
func (s *sessions) keep(i int) error {
	return s.beat(i, subjects.KeepNodeSubject(s.all[i].node, subjects.Anyone))
}

// keepEverywhere is that of one that has none.
func (s *sessions) keepEverywhere(i int) error {
	return s.beat(i, subjects.SimpleSubject(subjects.OpKeep, subjects.Anyone))
}

func (s *sessions) beat(i int, subject string) error {
	s.all[i].beat++
	return s.ask(i, subject, &subjects.Request{Op: subjects.OpKeep, Session: s.all[i].token, Beat: s.all[i].beat})
}

// paced has the first n sessions ask once, evenly over a time, and waits until all are answered.
func (s *sessions) paced(ctx context.Context, n int, period time.Duration, ask func(i int) error) error {
	s.asks = ask
	s.answered.Store(0)
	if err := pace(ctx, n, period, ask); err != nil {
		return err
	}
	return s.settled(ctx, n)
}

// settled waits until n are answered.
func (s *sessions) settled(ctx context.Context, n int) error {
	waiting, cancel := context.WithTimeout(ctx, rig.Patience)
	defer cancel()
	err := rig.Await(waiting, func() (bool, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.answered.Load() >= int64(n), s.failed
	})
	if err != nil {
		return fmt.Errorf("%d of %d are answered: %w", s.answered.Load(), n, err)
	}
	return nil
}

// pace calls do for each number, evenly over a time.
func pace(ctx context.Context, n int, period time.Duration, do func(i int) error) error {
	tick := time.NewTicker(sessionPace)
	defer tick.Stop()
	for i, begin := 0, time.Now(); i < n; {
		for due := int(float64(n) * float64(time.Since(begin)) / float64(period)); i < min(n, due); i++ {
			if err := do(i); err != nil {
				return err
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// take is told of an answer: operation and number, and what it says.
func (s *sessions) take(which string, m *nats.Msg) {
	op, number, _ := strings.Cut(which, ".")
	if token, marked := strings.CutPrefix(number, bundleMark); marked {
		if token == "" {
			s.takeSheaf(m.Data)
		} else {
			s.takeKept(token, len(m.Header) > 0, m.Data)
		}
		return
	}
	i, err := strconv.Atoi(number)
	if err != nil {
		s.fail(fmt.Errorf("an answer to %q: %w", which, err))
		return
	}
	refusal, refused := subjects.DecodeRefusal(m.Data)
	if m.Header.Get("Status") != "" || refused && (refusal.Code == 503 || refusal.Code == 421) {
		time.AfterFunc(askAgain, func() {
			if err := s.asks(i); err != nil {
				s.fail(err)
			}
		})
		return
	}
	if refused {
		s.fail(fmt.Errorf("%s of session %d: %w", op, i, refusal))
		return
	}
	if err := s.learn(op, i, m); err != nil {
		s.fail(fmt.Errorf("%s of session %d: %w", op, i, err))
		return
	}
	s.answered.Add(1)
}

func (s *sessions) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failed == nil {
		s.failed = err
	}
}

func (s *sessions) learn(op string, i int, m *nats.Msg) (err error) {
	one := &s.all[i]
	switch op {
	case subjects.OpSessionOpen.String():
		var opened struct{ Session string }
		err = json.Unmarshal(m.Data, &opened)
		one.token = opened.Session
	case subjects.OpAcquire.String():
		var grant subjects.Grant
		err = grant.DecodeJSON(m.Data)
		one.key, one.node = grant.Key, grant.Node
	case subjects.OpRelease.String():
		one.key = 0
	case subjects.OpKeep.String():
		err = s.kept(i, m.Data)
	}
	return err
}

// kept reads what a node says that a session has.
func (s *sessions) kept(i int, body []byte) error {
	var kept subjects.Kept
	if err := kept.DecodeJSON(body); err != nil {
		return err
	}
	if (kept.Count > 0) != (s.all[i].key != 0) || kept.Beat != s.all[i].beat {
		return fmt.Errorf("the node counts %d locks at keep-alive %d of %d", kept.Count, kept.Beat, s.all[i].beat)
	}
	return nil
}
