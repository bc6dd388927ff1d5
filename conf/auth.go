package conf

import (
	"crypto/rand"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nkeys"
)

// Names of the accounts that are not a zone's.
const (
	systemName = "SYS"
	nodesName  = "OCLOCKS"
)

// MaxUsers is how many users a zone keeps: those whose credentials count, and those that were revoked before they
// expired.
const MaxUsers = 10_000

// SecretLen is the length of the cluster's secret, in bytes.
const SecretLen = 32

// Auth is what everybody's permissions hang on: the operator's key, the keys of the accounts, who has been given
// credentials and whose were taken back, and the secret of the cluster. It lives in memory, or in the file auth.json of
// a data directory, which other processes may change too: see Reload. Its methods may be called at the same time.
type Auth struct {
	dir string // "" in memory

	mu    sync.RWMutex
	state *authState // replaced as a whole, never changed
}

// authState is the content of the file. Keys are nkey seeds.
type authState struct {
	Version  int                  `json:"version"`
	Operator string               `json:"operator"`
	System   string               `json:"system"`
	Nodes    string               `json:"nodes"`
	Curve    string               `json:"curve,omitempty"` // see Auth.CurveKey
	Secret   []byte               `json:"secret"`
	Zones    map[string]*zoneKeys `json:"zones"`
}

// zoneKeys are the keys of one zone's account. Each role has a signing key of its own, whose scope in the account's JWT
// holds the permissions; so what a role may do can change without new credentials. Open signs the one user JWT of those
// who come without credentials.
type zoneKeys struct {
	Account string          `json:"account"`
	Roles   map[Role]string `json:"roles"`
	Open    string          `json:"open"`
	Users   []User          `json:"users,omitempty"`
}

// User is somebody who was given credentials.
type User struct {
	Key     string    `json:"key"` // public nkey; the user's token in subjects
	Name    string    `json:"name"`
	Zone    string    `json:"zone"`
	Role    Role      `json:"role"`
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expires,omitzero"` // zero: never
	Revoked time.Time `json:"revoked,omitzero"` // zero: not
}

// Status is "valid", "expired" or "revoked".
func (u User) Status(now time.Time) string {
	switch {
	case !u.Revoked.IsZero():
		return "revoked"
	case u.expired(now):
		return "expired"
	}
	return "valid"
}

func (u User) expired(now time.Time) bool { return !u.Expires.IsZero() && !now.Before(u.Expires) }

func newState() (*authState, error) {
	s := &authState{Version: 1, Zones: map[string]*zoneKeys{}, Secret: make([]byte, SecretLen)}
	if _, err := rand.Read(s.Secret); err != nil {
		return nil, fmt.Errorf("make the secret of the cluster: %w", err)
	}
	var err error
	if s.Operator, err = newSeed(nkeys.PrefixByteOperator); err != nil {
		return nil, err
	}
	if s.Curve, err = newCurve(); err != nil {
		return nil, err
	}
	if s.System, err = newSeed(nkeys.PrefixByteAccount); err != nil {
		return nil, err
	}
	s.Nodes, err = newSeed(nkeys.PrefixByteAccount)
	return s, err
}

func newZoneKeys() (*zoneKeys, error) {
	z := &zoneKeys{Roles: map[Role]string{}}
	var err error
	for _, r := range Roles() {
		if z.Roles[r], err = newSeed(nkeys.PrefixByteAccount); err != nil {
			return nil, err
		}
	}
	if z.Account, err = newSeed(nkeys.PrefixByteAccount); err != nil {
		return nil, err
	}
	z.Open, err = newSeed(nkeys.PrefixByteAccount)
	return z, err
}

func newSeed(kind nkeys.PrefixByte) (string, error) {
	pair, err := nkeys.CreatePair(kind)
	if err != nil {
		return "", fmt.Errorf("make a key: %w", err)
	}
	seed, err := pair.Seed()
	return string(seed), err
}

// clone is a copy that shares nothing that changes.
func (s *authState) clone() *authState {
	c := *s
	c.Zones = maps.Clone(s.Zones)
	for name, z := range c.Zones {
		zc := *z
		zc.Users = slices.Clone(z.Users)
		c.Zones[name] = &zc
	}
	return &c
}

// NewAuth makes fresh keys that are in memory only.
func NewAuth() (*Auth, error) {
	state, err := newState()
	if err != nil {
		return nil, err
	}
	return &Auth{state: state}, nil
}

// File is the path of the authentication file, "" if all is in memory.
func (a *Auth) File() string {
	if a.dir == "" {
		return ""
	}
	return filepath.Join(a.dir, authFile)
}

// Secret is the secret of the cluster, for the MACs of receipts and session tokens. The caller must not change it.
func (a *Auth) Secret() []byte { return a.current().Secret }

// EnsureZone makes keys for the zone if it has none yet.
func (a *Auth) EnsureZone(name string) error {
	if err := CheckZoneName(name); err != nil {
		return err
	}
	if a.current().Zones[name] != nil {
		return nil
	}
	return a.change(func(s *authState) error { return s.ensureZone(name) })
}

func (s *authState) ensureZone(name string) error {
	if s.Zones[name] != nil {
		return nil
	}
	if len(s.Zones) >= MaxZones {
		return fmt.Errorf("zone %s: %w: there are keys of %d zones", name, ErrTooMany, MaxZones)
	}
	keys, err := newZoneKeys()
	if err != nil {
		return fmt.Errorf("zone %s: %w", name, err)
	}
	s.Zones[name] = keys
	return nil
}

// RemoveZone forgets the keys of a zone, for ever: credentials of its users never count again, also if a zone of the
// same name is made later. ErrNotFound if there are none.
func (a *Auth) RemoveZone(name string) error {
	return a.change(func(s *authState) error {
		if s.Zones[name] == nil {
			return fmt.Errorf("keys of zone %s: %w", name, ErrNotFound)
		}
		delete(s.Zones, name)
		return nil
	})
}

// Zones are the names of the zones that have keys, in order.
func (a *Auth) Zones() []string { return slices.Sorted(maps.Keys(a.current().Zones)) }

func (a *Auth) current() *authState {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.state
}

func (s *authState) zone(name string) (*zoneKeys, error) {
	if z := s.Zones[name]; z != nil {
		return z, nil
	}
	return nil, fmt.Errorf("keys of zone %s: %w", name, ErrNotFound)
}
