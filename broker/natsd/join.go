package natsd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/conf"
)

const (
	// namesakeWait is how long servers have to tell whom they are connected with, before they are asked again; namesakeTries
	// is how often they are asked.
	namesakeWait  = 200 * time.Millisecond
	namesakeTries = 5

	// staleRoute is after which time a server that has died is no longer taken for connected.
	staleRoute = (routePings + 2) * routePing

	// probeTime is how long Join looks for the reason why nobody was reached.
	probeTime = 2 * time.Second
)

// Join waits until the server is connected with at least one other. ErrDuplicate if another server that runs has the same
// name, which is a node's identifier: call it at the start of the daemon, before the node does anything, so that it is the
// newcomer that gives way. ErrNobody, with the reason for each address, when ctx ends before; the server goes on trying.
func (s *Server) Join(ctx context.Context) error {
	r := s.routes
	if r == nil {
		return fmt.Errorf("%w: the daemon listens for no others", ErrNobody)
	}
	for {
		r.mu.Lock()
		changed, duplicate, connected := r.changed, r.duplicate, len(r.connected) > 0
		r.mu.Unlock()
		if duplicate {
			return r.duplicateError()
		}
		if connected {
			return r.namesake(ctx)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return r.nobody(ctx)
		}
	}
}

// OwnAddressListed says whether one of the addresses in Config.Cluster.Join was found to be this server's own.
func (s *Server) OwnAddressListed() bool {
	if s.routes == nil {
		return false
	}
	s.routes.mu.Lock()
	defer s.routes.mu.Unlock()
	return s.routes.self
}

func (r *routes) duplicateError() error {
	return fmt.Errorf("%w: node %s: if this data directory is a copy of another node's, begin with an empty one instead",
		ErrDuplicate, r.s.cfg.ServerName)
}

// namesake asks the connected servers whom they are connected with: one that has this one's name is never connected with
// this one itself. A server that has just died may be among them for a while.
func (r *routes) namesake(ctx context.Context) error {
	sys, err := r.s.ConnectSystem()
	if err != nil {
		return err
	}
	defer sys.Close()
	began := time.Now()
	for tries := 1; ; tries++ {
		found, complete, err := r.ask(ctx, sys)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("ask for the names of the servers: %w", ctx.Err())
		case err != nil:
			return fmt.Errorf("ask for the names of the servers: %w", err)
		case r.isDuplicate(), found && time.Since(began) > staleRoute:
			return r.duplicateError()
		case !found && complete:
			return nil
		case !found && tries >= namesakeTries:
			r.s.log.Warn("not all daemons have told whom they are connected with", "asked", r.s.Routes())
			return nil
		}
	}
}

// ask asks once; complete says that all connected servers have answered, found that one is connected with a namesake.
func (r *routes) ask(ctx context.Context, sys *nats.Conn) (found, complete bool, err error) {
	sub, err := sys.SubscribeSync(sys.NewRespInbox())
	if err != nil {
		return false, false, err
	}
	if err := sys.PublishRequest("$SYS.REQ.SERVER.PING.ROUTEZ", sub.Subject, nil); err != nil {
		return false, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, namesakeWait)
	defer cancel()
	answered := map[string]bool{}
	for found || !r.all(answered) { // after a find there is time
		msg, err := sub.NextMsgWithContext(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			return found, false, nil
		}
		if err != nil {
			return found, false, err
		}
		var answer struct {
			Server struct {
				ID string `json:"id"`
			} `json:"server"`
			Data server.Routez `json:"data"`
		}
		if err := json.Unmarshal(msg.Data, &answer); err != nil {
			return found, false, err
		}
		answered[answer.Server.ID] = true
		for _, route := range answer.Data.Routes {
			found = found || route.RemoteName == r.s.cfg.ServerName && route.RemoteID != r.s.ID()
		}
	}
	return found, true, nil
}

func (r *routes) isDuplicate() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.duplicate
}

func (r *routes) all(answered map[string]bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id := range r.servers {
		if !answered[id] {
			return false
		}
	}
	return true
}

// nobody finds the reason why no other server was reached.
func (r *routes) nobody(ctx context.Context) error {
	r.mu.Lock()
	tried, self := slices.Clone(r.tried), r.self
	r.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeTime)
	defer cancel()
	reasons := make([]string, len(tried))
	var probes sync.WaitGroup
	for i, address := range tried {
		probes.Go(func() {
			found, err := conf.Probe(ctx, address, r.cfg.Identity)
			switch {
			case err != nil:
				reasons[i] = fmt.Sprintf("%s: %v", address, err)
			case found.Cluster != r.cfg.Name:
				reasons[i] = fmt.Sprintf("%s: is of cluster %s, and this daemon of %s", address, found.Cluster, r.cfg.Name)
			default:
				reasons[i] = fmt.Sprintf("%s: node %s is there", address, found.Node)
			}
		})
	}
	probes.Wait()
	if len(tried) == 0 {
		reasons = []string{"there is no other address"}
	}
	if self {
		reasons = append(reasons, "one address is this daemon's own")
	}
	return fmt.Errorf("%w: %s", ErrNobody, strings.Join(reasons, "; "))
}
