package natsd

import (
	"errors"
	"fmt"
	"maps"
	"sync"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/opencluster/oclocks/conf"
)

// accounts hands the JWTs of the accounts to nats-server: it is its AccountResolver, without files or network.
type accounts struct {
	mu    sync.RWMutex
	jwts  map[string]string // by account id
	zones map[string]string // zone by account id
	ids   map[string]string // account id by zone
}

var _ server.AccountResolver = (*accounts)(nil)

func newAccounts(auth *conf.Auth, zones []conf.Zone) (*accounts, error) {
	systemID, system, err := auth.SystemAccount()
	if err != nil {
		return nil, fmt.Errorf("system account: %w", err)
	}
	nodesID, nodes, err := auth.NodesAccount()
	if err != nil {
		return nil, fmt.Errorf("account of the nodes: %w", err)
	}
	r := &accounts{
		jwts:  map[string]string{systemID: system, nodesID: nodes},
		zones: map[string]string{},
		ids:   map[string]string{},
	}
	for _, z := range zones {
		id, token, err := zoneAccount(auth, z)
		if err != nil {
			return nil, err
		}
		r.put(z.Name, id, token)
	}
	return r, nil
}

// snapshot is a resolver with the JWTs of now, for nats-server's options, which must be of a type that nats-server knows
// when it compares options. It is in use while options change, and otherwise this one is: with a resolver of that type
// nats-server forgets what another server subscribes to in a zone that this one does not know yet.
func (r *accounts) snapshot() (*server.MemAccResolver, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	m := &server.MemAccResolver{}
	for id, token := range r.jwts {
		if err := m.Store(id, token); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// zoneAccount makes the zone's keys if need be, and its account's JWT.
func zoneAccount(auth *conf.Auth, z conf.Zone) (id, token string, err error) {
	if err := auth.EnsureZone(z.Name); err != nil {
		return "", "", err
	}
	if id, err = auth.AccountID(z.Name); err != nil {
		return "", "", err
	}
	if token, err = auth.AccountJWT(z); err != nil {
		return "", "", fmt.Errorf("account of zone %s: %w", z.Name, err)
	}
	return id, token, nil
}

func (r *accounts) put(zone, id, token string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.jwts[id], r.zones[id], r.ids[zone] = token, zone, id
}

func (r *accounts) remove(id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if zone := r.zones[id]; r.ids[zone] == id {
		delete(r.ids, zone)
	}
	delete(r.jwts, id)
	delete(r.zones, id)
}

// zoneIDs are the zones by account id.
func (r *accounts) zoneIDs() map[string]string {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return maps.Clone(r.zones)
}

func (r *accounts) id(zone string) (string, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	id, ok := r.ids[zone]
	return id, ok
}

func (r *accounts) zone(id string) (string, bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	zone, ok := r.zones[id]
	return zone, ok
}

// Fetch gives nats-server the JWT of an account.
func (r *accounts) Fetch(id string) (string, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if token, ok := r.jwts[id]; ok {
		return token, nil
	}
	return "", server.ErrMissingAccount
}

// The rest of server.AccountResolver: nats-server has nothing to store here, and takes updates by itself.

func (r *accounts) Store(string, string) error {
	return errors.New("accounts are made by the daemon only")
}
func (r *accounts) IsReadOnly() bool           { return true }
func (r *accounts) Start(*server.Server) error { return nil }
func (r *accounts) IsTrackingUpdate() bool     { return false }
func (r *accounts) Reload() error              { return nil }
func (r *accounts) Close()                     {}
