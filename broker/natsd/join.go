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

	"github.com/opencluster/oclocks/conf"
)

const (
	// namesakeWait is how long servers have to answer the question whether one has this one's name.
	namesakeWait = 200 * time.Millisecond

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
			return r.checkNamesake(ctx)
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

// checkNamesake asks all servers for their names: one with this one's name may be connected with the others only.
func (r *routes) checkNamesake(ctx context.Context) (err error) {
	sys, err := r.s.ConnectSystem()
	if err != nil {
		return err
	}
	defer sys.Close()
	answers := sys.NewRespInbox()
	sub, err := sys.SubscribeSync(answers)
	if err == nil {
		err = sys.PublishRequest("$SYS.REQ.SERVER.PING.IDZ", answers, nil)
	}
	if err != nil {
		return fmt.Errorf("ask for the names of the servers: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, namesakeWait)
	defer cancel()
	for {
		msg, err := sub.NextMsgWithContext(ctx)
		if errors.Is(err, context.DeadlineExceeded) {
			break
		}
		if err != nil {
			return fmt.Errorf("ask for the names of the servers: %w", err)
		}
		var id server.ServerID
		if err := json.Unmarshal(msg.Data, &id); err != nil {
			return fmt.Errorf("name of a server: %w", err)
		}
		if id.Name == r.s.cfg.ServerName && id.ID != r.s.ID() {
			return r.duplicateError()
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.duplicate {
		return r.duplicateError()
	}
	return nil
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
