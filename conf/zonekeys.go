package conf

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nkeys"
)

// ZoneKeys are the keys and users of one zone in a form that can be given to other nodes: the cluster's shared
// configuration keeps them, and each node's Auth follows it. The seeds in it are secrets. A value is not changed once it
// was given away.
type ZoneKeys struct {
	Account string          `json:"account"` // seed of the account's key
	Roles   map[Role]string `json:"roles"`   // seeds of the signing keys
	Open    string          `json:"open"`    // seed of the key that signs for those who come without credentials
	Users   []User          `json:"users,omitempty"`
}

// NewZoneKeys makes fresh keys, without users.
func NewZoneKeys() (ZoneKeys, error) {
	z, err := newZoneKeys()
	if err != nil {
		return ZoneKeys{}, err
	}
	return ZoneKeys(*z), nil
}

// Clone is a copy that shares nothing.
func (k ZoneKeys) Clone() ZoneKeys {
	k.Roles, k.Users = maps.Clone(k.Roles), slices.Clone(k.Users)
	return k
}

// Validate refuses keys that are missing or are not what they should be. No error holds a seed.
func (k ZoneKeys) Validate() error {
	if err := checkSeed(k.Account, nkeys.PrefixByteAccount); err != nil {
		return fmt.Errorf("account: %w", err)
	}
	if err := checkSeed(k.Open, nkeys.PrefixByteAccount); err != nil {
		return fmt.Errorf("open: %w", err)
	}
	for _, r := range Roles() {
		if err := checkSeed(k.Roles[r], nkeys.PrefixByteAccount); err != nil {
			return fmt.Errorf("role %s: %w", r, err)
		}
	}
	if len(k.Roles) != len(Roles()) {
		return fmt.Errorf("%d roles, expected %d", len(k.Roles), len(Roles()))
	}
	if len(k.Users) > MaxUsers {
		return fmt.Errorf("users: %w: %d, at most %d", ErrTooMany, len(k.Users), MaxUsers)
	}
	return nil
}

// Issue makes credentials for a new user: creds is the content of a .creds file, user what has to be added to the zone's
// users before they count. Errors: as IssueUser.
func (k ZoneKeys) Issue(zone, name string, role Role, ttl time.Duration, now time.Time) (creds []byte, user User, err error) {
	if err := CheckUserName(name); err != nil {
		return nil, User{}, err
	}
	if _, err := ParseRole(string(role)); err != nil {
		return nil, User{}, err
	}
	if ttl != 0 && ttl < time.Second {
		return nil, User{}, fmt.Errorf("credentials for %s: expected at least 1s, or 0s for credentials that never expire", ttl)
	}
	user = User{Name: name, Zone: zone, Role: role, Issued: now.UTC().Truncate(time.Second)}
	if ttl > 0 {
		user.Expires = user.Issued.Add(ttl.Truncate(time.Second))
	}
	z := zoneKeys(k)
	if creds, err = z.issue(&user); err != nil {
		return nil, User{}, fmt.Errorf("credentials of %s: %w", name, err)
	}
	return creds, user, nil
}

// Revoke gives the users, by public key or by name, as they are once their credentials are taken back; the zone's own users
// have to be replaced by them. ErrNotFound if there is none with valid credentials.
func (k ZoneKeys) Revoke(zone, keyOrName string, now time.Time) ([]User, error) {
	now = now.UTC().Truncate(time.Second)
	var revoked []User
	known := false
	for _, u := range k.Users {
		if u.Key != keyOrName && u.Name != keyOrName {
			continue
		}
		known = true
		if u.Revoked.IsZero() {
			u.Revoked = now
			revoked = append(revoked, u)
		}
	}
	switch {
	case len(revoked) > 0:
		return revoked, nil
	case known || !nkeys.IsValidPublicUserKey(keyOrName):
		return nil, fmt.Errorf("user %s with valid credentials in zone %s: %w", keyOrName, zone, ErrNotFound)
	}
	return []User{{Key: keyOrName, Zone: zone, Revoked: now}}, nil
}

// Expired are the public keys of the users whose credentials have expired: nothing has to be known of them any more.
func (k ZoneKeys) Expired(now time.Time) []string {
	var keys []string
	for _, u := range k.Users {
		if u.expired(now) {
			keys = append(keys, u.Key)
		}
	}
	return keys
}

// Export gives the keys of all zones, by name.
func (a *Auth) Export() map[string]ZoneKeys {
	state := a.current()
	out := make(map[string]ZoneKeys, len(state.Zones))
	for _, name := range slices.Sorted(maps.Keys(state.Zones)) {
		out[name] = ZoneKeys(*state.Zones[name]).Clone()
	}
	return out
}

// Follow makes the zones' keys and users be exactly these, those of the shared configuration. Nothing is written if they
// are already. The error names the zone whose keys are not valid; then nothing was changed.
func (a *Auth) Follow(zones map[string]ZoneKeys) error {
	for _, name := range slices.Sorted(maps.Keys(zones)) {
		if err := CheckZoneName(name); err != nil {
			return err
		}
		if err := zones[name].Validate(); err != nil {
			return fmt.Errorf("keys of zone %s: %w", name, err)
		}
	}
	if len(zones) > MaxZones {
		return fmt.Errorf("%w: keys of %d zones, at most %d", ErrTooMany, len(zones), MaxZones)
	}
	equal := func(z *zoneKeys, k ZoneKeys) bool {
		return z.Account == k.Account && z.Open == k.Open && maps.Equal(z.Roles, k.Roles) &&
			slices.EqualFunc(z.Users, k.Users, sameUser)
	}
	if maps.EqualFunc(a.current().Zones, zones, equal) {
		return nil
	}
	return a.change(func(s *authState) error {
		s.Zones = make(map[string]*zoneKeys, len(zones))
		for _, name := range slices.Sorted(maps.Keys(zones)) {
			z := zoneKeys(zones[name].Clone())
			s.Zones[name] = &z
		}
		return nil
	})
}

func sameUser(a, b User) bool {
	same := a.Issued.Equal(b.Issued) && a.Expires.Equal(b.Expires) && a.Revoked.Equal(b.Revoked)
	return same && a.Key == b.Key && a.Name == b.Name && a.Zone == b.Zone && a.Role == b.Role
}
