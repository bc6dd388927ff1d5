package enroll

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/conf"
)

// maxUsed is how many used tokens a daemon remembers. They are forgotten when they expire.
const maxUsed = 10_000

// Config is what a daemon lets nodes in with.
type Config struct {
	Auth      *conf.Auth
	Authority *conf.Authority
	Routes    func() map[string][]string      // addresses HOST:PORT of all nodes, this one's too, by identifier
	Settings  func() (json.RawMessage, error) // what else a new node has to know; nil for nothing
	Logger    *slog.Logger
}

// used is a token that a node has come with. The same node may come again: its answer may be lost. Nobody else knows its
// identifier, which is random and sealed.
type used struct {
	node    string
	expires time.Time
}

type server struct {
	cfg Config
	log *slog.Logger
	nc  *nats.Conn

	mu   sync.Mutex
	used map[string]used // by the token's id
}

// Serve lets new nodes in until stop is called: nc is a connection into the account of the nodes. One of the daemons that
// serve answers, and all remember which tokens were used.
func Serve(nc *nats.Conn, cfg Config) (stop func() error, err error) {
	if _, err := cfg.Auth.CurveKey(); err != nil {
		return nil, fmt.Errorf("let nodes in: %w", err)
	}
	s := &server{cfg: cfg, log: cfg.Logger.With("room", "enroll"), nc: nc, used: map[string]used{}}
	heard, err := nc.Subscribe(conf.EnrollSubject, s.hear)
	if err != nil {
		return nil, fmt.Errorf("let nodes in: %w", err)
	}
	asked, err := nc.QueueSubscribe(conf.EnrollSubject, conf.EnrollSubject, s.serve)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("let nodes in: %w", err), heard.Unsubscribe())
	}
	return func() error { return errors.Join(heard.Unsubscribe(), asked.Unsubscribe()) }, nil
}

// hear remembers the token of a request that this or another daemon answers.
func (s *server) hear(m *nats.Msg) {
	a, sig, err := openRequest(s.cfg.Auth, m.Data)
	if err != nil {
		return // whoever answers tells it
	}
	if _, err := s.claim(a, sig, time.Now()); err != nil {
		s.log.Debug("a request to join", "error", err)
	}
}

// serve answers a request.
func (s *server) serve(m *nats.Msg) {
	if !ownInbox(m.Reply) {
		return
	}
	a, sig, err := openRequest(s.cfg.Auth, m.Data)
	if err != nil {
		s.log.Warn("a request to join is refused", "error", err)
		s.send(m.Reply, part{Failure: encodeError(err)})
		return
	}
	id, err := s.claim(a, sig, time.Now())
	if err == nil && !strings.HasPrefix(m.Reply, conf.InboxPrefix(id)+".") {
		return // the token's user can have meant nothing good
	}
	log := s.log.With("node", a.Node, "name", a.Name, "token", id)
	reply := answer{}
	if err == nil {
		reply, err = s.membership()
	}
	if err != nil {
		log.Warn("a request to join is refused", "error", err)
		reply = answer{Failure: encodeError(err)}
	} else {
		log.Info("a new node gets the keys of the cluster")
	}
	messages, err := pack(s.cfg.Auth, reply, a.From)
	if err != nil {
		log.Error("answer to a request to join", "error", err)
		return
	}
	for _, message := range messages {
		s.publish(m.Reply, message)
	}
}

// ownInbox says whether a reply subject is in the inbox of a user with a key, as a token's user is; those of the daemons'
// own requests are not.
func ownInbox(reply string) bool {
	rest, ok := strings.CutPrefix(reply, "_INBOX.U")
	user, _, dot := strings.Cut(rest, ".")
	return ok && dot && len(user) == 55
}

func (s *server) membership() (answer, error) {
	m, err := s.cfg.Auth.Membership(s.cfg.Authority, s.cfg.Routes())
	if err != nil {
		return answer{}, err
	}
	a := answer{Membership: m}
	if s.cfg.Settings != nil {
		a.Settings, err = s.cfg.Settings()
	}
	return a, err
}

// claim checks the token of a request, and that no other node came with it before.
func (s *server) claim(a ask, sig signed, now time.Time) (id string, err error) {
	id, expires, err := s.cfg.Auth.CheckJoinToken(a.JWT, sig.Ask, sig.Signature, now)
	if err != nil {
		return "", err
	}
	if err := conf.CheckNodeID(a.Node); err != nil {
		return id, err
	}
	if len(a.Name) > maxName {
		return id, fmt.Errorf("a name of %d bytes: at most %d are possible", len(a.Name), maxName)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, u := range s.used {
		if !now.Before(u.expires) {
			delete(s.used, id)
		}
	}
	before, ok := s.used[id]
	switch {
	case ok && before.node != a.Node:
		return id, ErrUsed
	case !ok && len(s.used) >= maxUsed:
		return id, errors.New("too many tokens were used: try again later")
	}
	s.used[id] = used{node: a.Node, expires: expires}
	return id, nil
}

func (s *server) send(reply string, p part) {
	message, err := json.Marshal(p)
	if err != nil { // it is text only
		return
	}
	s.publish(reply, message)
}

func (s *server) publish(reply string, message []byte) {
	if err := s.nc.Publish(reply, message); err != nil {
		s.log.Warn("answer to a request to join", "error", err)
	}
}
