package admin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/nats-io/nkeys"

	"github.com/opencluster/oclocks/broker/control"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
)

func (s *Server) do(ctx context.Context, op, key string, r *request) (any, error) {
	switch op {
	case opChange:
		return s.change(ctx, key, r)
	case opAlerts:
		s.mu.Lock()
		defer s.mu.Unlock()
		return slices.Clone(s.alerts), nil
	case opStatus:
		return s.status(ctx)
	case opState, opUsers, opViews:
		state, err := s.cfg.Control.Read(ctx)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
		switch op {
		case opUsers:
			return usersOf(state, r.Zone, r.After)
		case opViews:
			return viewsOf(state, r.From), nil
		}
		return describe(state)
	}
	return nil, fmt.Errorf("%w: there is no operation %q", ErrRequest, op)
}

// change carries out a command and logs it.
func (s *Server) change(ctx context.Context, key string, r *request) (any, error) {
	if r.Command == nil {
		return nil, fmt.Errorf("%w: no command", ErrRequest)
	}
	if r.Command.Zone != nil && r.Command.Zone.Keys != nil { // they have come in clear, and would go into the log
		return nil, fmt.Errorf("%w: the keys of a zone are made by the cluster", ErrRequest)
	}
	what := text(r.Command)
	result, err := s.perform(ctx, *r.Command)
	log := s.log.With("by", r.By, "key", key, "command", what)
	switch {
	case err != nil:
		log.Warn("a change of the configuration was not carried out, or nobody knows", "error", err)
	case result.Err() != nil:
		log.Warn("a change of the configuration was refused", "change", result.Change, "error", result.Err())
	default:
		log.Info("the configuration was changed", "change", result.Change)
	}
	return result, err
}

func (s *Server) perform(ctx context.Context, c shared.Command) (shared.Result, error) {
	if c.Zone != nil {
		if err := s.zoneKeys(ctx, c.Zone); err != nil {
			return shared.Result{}, err
		}
	}
	result, err := s.cfg.Control.Change(ctx, c)
	switch {
	case errors.Is(err, shared.ErrCommand):
		return shared.Result{}, fmt.Errorf("%w: %w", ErrRequest, err)
	case err != nil:
		return shared.Result{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return result, nil
}

// zoneKeys makes the keys of a zone that is new.
func (s *Server) zoneKeys(ctx context.Context, put *shared.ZonePut) error {
	state, err := s.cfg.Control.Read(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if _, there := state.Keys[put.Zone.Name]; there {
		return nil
	}
	keys, err := conf.NewZoneKeys()
	if err != nil {
		return fmt.Errorf("keys of zone %s: %w", put.Zone.Name, err)
	}
	put.Keys = &keys
	return nil
}

// text is a command for the log. A command of a tool has no secrets.
func text(c *shared.Command) string {
	content, err := json.Marshal(c)
	if err != nil { // it came as JSON
		return ""
	}
	const most = 2048
	if len(content) > most {
		return strings.ToValidUTF8(string(content[:most]), "") + "…"
	}
	return string(content)
}

func (s *Server) status(ctx context.Context) (any, error) {
	nodes, err := s.cfg.Control.Cluster(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	out := Status{Nodes: make([]control.Status, len(nodes))}
	for i := range nodes {
		out.Nodes[i] = nodes[i]
		out.Nodes[i].Copies = nil
	}
	return out, nil
}

// describe leaves the secrets out.
func describe(state *shared.State) (*State, error) {
	out := &State{
		Change: state.Change, Cluster: state.Cluster, Locked: state.Locked, Buckets: state.Buckets(), Nodes: state.Nodes,
		Settings: make(map[string]string), Zones: make([]Zone, 0, len(state.Zones)), Pins: make([]Pin, 0, len(state.Pins)),
	}
	for _, key := range shared.Keys() {
		value, err := state.Settings.Get(key)
		if err != nil {
			return nil, err
		}
		out.Settings[key] = value
	}
	for _, z := range state.Zones {
		keys := state.Keys[z.Name]
		pair, err := nkeys.FromSeed([]byte(keys.Account))
		if err != nil {
			return nil, fmt.Errorf("keys of zone %s: %w", z.Name, err)
		}
		account, err := pair.PublicKey()
		if err != nil {
			return nil, fmt.Errorf("keys of zone %s: %w", z.Name, err)
		}
		out.Zones = append(out.Zones, Zone{Zone: z, Account: account, Users: len(keys.Users)})
	}
	for _, bucket := range slices.Sorted(maps.Keys(state.Pins)) {
		out.Pins = append(out.Pins, Pin{Bucket: bucket, Number: state.Pins[bucket]})
	}
	return out, nil
}

// usersOf gives the users of a zone by key, those after a key, as many as fit.
func usersOf(state *shared.State, zone, after string) (any, error) {
	keys, ok := state.Keys[zone]
	if !ok {
		return nil, fmt.Errorf("zone %s: %w", zone, shared.ErrNotFound)
	}
	list := slices.DeleteFunc(slices.Clone(keys.Users), func(u conf.User) bool { return u.Key <= after })
	slices.SortFunc(list, func(a, b conf.User) int { return cmp.Compare(a.Key, b.Key) })
	page := users{Users: list}
	if len(list) > usersPage {
		page.Users, page.More = list[:usersPage], true
	}
	return page, nil
}

func viewsOf(state *shared.State, from uint32) views {
	page := views{Views: []shared.BucketView{}}
	for b := from; b < state.Buckets(); b++ {
		if len(page.Views) == viewsPage {
			page.Next = b
			break
		}
		page.Views = append(page.Views, shared.BucketView{Bucket: b, View: state.Views[b]})
	}
	return page
}
