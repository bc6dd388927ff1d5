package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker/control"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
)

const (
	answerWait      = 5 * time.Second // for the cluster
	maxAnswering    = 16              // requests at work; more wait in the subscription
	pendingRequests = 256
	pendingBytes    = 8 << 20
)

// Control is what is asked of the control plane; *control.Control is one.
type Control interface {
	Change(ctx context.Context, command shared.Command) (shared.Result, error)
	Read(ctx context.Context) (*shared.State, error)
	Cluster(ctx context.Context) ([]control.Status, error)
}

// Config of a node's administration.
type Config struct {
	Conn    *nats.Conn // into the account of the nodes; the caller closes it after Close
	Control Control
	Data    string // directory into which Running is written; "": nowhere
	Running conf.Running
	Logger  *slog.Logger // nil: slog.Default
}

// Server answers the tools.
type Server struct {
	cfg       Config
	log       *slog.Logger
	sub       *nats.Subscription
	ctx       context.Context //nolint:containedctx // of everything that Close ends
	cancel    context.CancelFunc
	answering chan struct{}
	requests  sync.WaitGroup
	closing   sync.Once

	mu     sync.Mutex
	over   bool
	alerts []control.Alert // the newest last
}

// Serve begins to answer requests, and tells tools on this machine where the daemon is. The context bounds the start only.
func Serve(ctx context.Context, cfg Config) (*Server, error) {
	s := &Server{cfg: cfg, log: cfg.Logger, answering: make(chan struct{}, maxAnswering)}
	if s.log == nil {
		s.log = slog.Default()
	}
	s.log = s.log.With("room", "admin")
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	var err error
	if s.sub, err = cfg.Conn.QueueSubscribe(subject("*", "*"), queueGroup, s.receive); err == nil {
		err = s.sub.SetPendingLimits(pendingRequests, pendingBytes)
	}
	if err == nil {
		flush, cancel := context.WithTimeout(ctx, answerWait)
		err = cfg.Conn.FlushWithContext(flush)
		cancel()
	}
	if err == nil && cfg.Data != "" {
		err = conf.SaveRunning(cfg.Data, cfg.Running)
	}
	if err != nil {
		s.end()
		return nil, fmt.Errorf("serve the tools: %w", err)
	}
	return s, nil
}

// Serving tells tools on this machine that the daemon serves its clients.
func (s *Server) Serving() error {
	if s.cfg.Data == "" {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return nil
	}
	s.cfg.Running.Serving = true
	return conf.SaveRunning(s.cfg.Data, s.cfg.Running)
}

// Close stops answering, waits for the answers that are being made, and takes the file of Running away.
func (s *Server) Close() error {
	var err error
	s.closing.Do(func() {
		s.end()
		if s.cfg.Data != "" {
			err = conf.RemoveRunning(s.cfg.Data)
		}
	})
	return err
}

func (s *Server) end() {
	s.mu.Lock()
	s.over = true
	s.mu.Unlock()
	if s.sub != nil {
		_ = s.sub.Unsubscribe() // fails only if the connection is closed, and then it is gone too
	}
	s.cancel()
	s.requests.Wait()
}

// Alert remembers an alert of any node, for those who ask later. It never waits.
func (s *Server) Alert(a control.Alert) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.alerts) >= alertsKept {
		s.alerts = append(s.alerts[:0], s.alerts[1:]...)
	}
	s.alerts = append(s.alerts, a)
}

// receive takes a request. It waits while as many as possible are being answered: the others wait in the subscription.
func (s *Server) receive(m *nats.Msg) {
	op, key, ok := parseSubject(m.Subject)
	// The answer goes to the inbox of who asks and nowhere else: this node may publish what they may not.
	if !ok || !strings.HasPrefix(m.Reply, conf.InboxPrefix(key)+".") {
		s.log.Warn("a request of a tool that cannot be answered", "subject", m.Subject, "reply", m.Reply)
		return
	}
	select {
	case s.answering <- struct{}{}:
	case <-s.ctx.Done():
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		<-s.answering
		return
	}
	s.requests.Go(func() {
		defer func() { <-s.answering }()
		ctx, cancel := context.WithTimeout(s.ctx, answerWait)
		defer cancel()
		s.respond(m, s.answer(ctx, op, key, m.Data))
	})
}

func (s *Server) respond(m *nats.Msg, a answer) {
	text, err := json.Marshal(a)
	if limit := s.cfg.Conn.MaxPayload(); err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("an answer of %d bytes is more than the %d of a message", len(text), limit)
	}
	if err != nil {
		s.log.Error("answer a tool", "subject", m.Subject, "error", err)
		text = fmt.Appendf(nil, `{"node":%q,"kind":"failed","problem":"the answer cannot be sent, see the daemon's log"}`, a.Node)
	}
	if err := m.Respond(text); err != nil {
		s.log.Error("answer a tool", "subject", m.Subject, "error", err)
	}
}

// kinds gives each error of this package a name that can be sent.
var kinds = []struct {
	name string
	err  error
}{{"unavailable", ErrUnavailable}, {"request", ErrRequest}}

// answer carries out a request.
func (s *Server) answer(ctx context.Context, op, key string, data []byte) answer {
	var r request
	result, err := any(nil), decode(data, &r)
	switch {
	case err != nil:
		err = fmt.Errorf("%w: %w", ErrRequest, err)
	case len(r.By) > maxBy:
		err = fmt.Errorf("%w: the name of who asks has %d bytes, at most %d", ErrRequest, len(r.By), maxBy)
	default:
		result, err = s.do(ctx, op, key, &r)
	}
	a := answer{Node: s.cfg.Running.Node}
	if err == nil {
		a.Result, err = json.Marshal(result)
	}
	if err == nil {
		return a
	}
	a.Result, a.Kind, a.Problem = nil, "failed", err.Error()
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			a.Kind, a.Problem = k.name, strings.TrimPrefix(err.Error(), k.err.Error()+": ")
		}
	}
	return a
}
