package conf

import (
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nkeys"
)

// IssueUser makes credentials for a user of the zone: creds is the content of a .creds file, key the user's public
// nkey. They expire after ttl (whole seconds, at least one), never if it is 0. A running daemon takes them at once. Two
// users may have one name, so that credentials can be replaced before the old ones are revoked. ErrNotFound if the zone
// has no keys, ErrTooMany if it has MaxUsers users.
func (a *Auth) IssueUser(zone, name string, role Role, ttl time.Duration) (creds []byte, key string, err error) {
	if err := CheckUserName(name); err != nil {
		return nil, "", err
	}
	if _, err := ParseRole(string(role)); err != nil {
		return nil, "", err
	}
	if ttl != 0 && ttl < time.Second {
		return nil, "", fmt.Errorf("credentials for %s: expected at least 1s, or 0s for credentials that never expire", ttl)
	}
	now := time.Now()
	err = a.change(func(s *authState) error {
		keys, err := s.zone(zone)
		if err != nil {
			return err
		}
		keys.Users = slices.DeleteFunc(keys.Users, func(u User) bool { return u.expired(now) })
		if len(keys.Users) >= MaxUsers {
			return fmt.Errorf("%w users in zone %s: %d, those counted that are revoked", ErrTooMany, zone, MaxUsers)
		}
		user := User{Name: name, Zone: zone, Role: role, Issued: now.UTC().Truncate(time.Second)}
		if ttl > 0 {
			user.Expires = user.Issued.Add(ttl.Truncate(time.Second))
		}
		if creds, err = keys.issue(&user); err != nil {
			return fmt.Errorf("credentials of %s: %w", name, err)
		}
		key = user.Key
		keys.Users = append(keys.Users, user)
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	return creds, key, nil
}

// issue makes the user's key and signs its JWT with the key of its role. The claims carry no permissions: those are in
// the scope of that key.
func (z *zoneKeys) issue(u *User) (creds []byte, err error) {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return nil, err
	}
	if u.Key, err = pair.PublicKey(); err != nil {
		return nil, err
	}
	seed, err := pair.Seed()
	if err != nil {
		return nil, err
	}
	claims, err := z.scopedUser(u.Key, u.Name)
	if err != nil {
		return nil, err
	}
	if !u.Expires.IsZero() {
		claims.Expires = u.Expires.Unix()
	}
	token, err := sign(claims, z.Roles[u.Role])
	if err != nil {
		return nil, err
	}
	return jwt.FormatUserConfig(token, seed)
}

// scopedUser are the claims of a user whose permissions come from the key that signs them.
func (z *zoneKeys) scopedUser(key, name string) (*jwt.UserClaims, error) {
	account, err := publicKey(z.Account)
	if err != nil {
		return nil, err
	}
	claims := jwt.NewUserClaims(key)
	claims.SetScoped(true)
	claims.Name = name
	claims.IssuerAccount = account
	return claims, nil
}

// RevokeUser takes credentials back: those with that public key, or all with that name. A running daemon learns of it
// when it reloads. A key that is not in the list is revoked too, if it is one. ErrNotFound if there is no such user.
func (a *Auth) RevokeUser(zone, keyOrName string) ([]User, error) {
	var revoked []User
	err := a.change(func(s *authState) error {
		keys, err := s.zone(zone)
		if err != nil {
			return err
		}
		now := time.Now().UTC().Truncate(time.Second)
		for i := range keys.Users {
			u := &keys.Users[i]
			if u.Revoked.IsZero() && (u.Key == keyOrName || u.Name == keyOrName) {
				u.Revoked = now
				revoked = append(revoked, *u)
			}
		}
		if len(revoked) > 0 {
			return nil
		}
		known := slices.ContainsFunc(keys.Users, func(u User) bool { return u.Key == keyOrName || u.Name == keyOrName })
		if known || !nkeys.IsValidPublicUserKey(keyOrName) {
			return fmt.Errorf("user %s with valid credentials in zone %s: %w", keyOrName, zone, ErrNotFound)
		}
		if len(keys.Users) >= MaxUsers {
			return fmt.Errorf("%w users in zone %s: %d", ErrTooMany, zone, MaxUsers)
		}
		revoked = []User{{Key: keyOrName, Zone: zone, Revoked: now}}
		keys.Users = append(keys.Users, revoked[0])
		return nil
	})
	if err != nil {
		return nil, err
	}
	return revoked, nil
}

// Users are those of a zone, in the order in which they were issued. ErrNotFound if the zone has no keys.
func (a *Auth) Users(zone string) ([]User, error) {
	keys, err := a.current().zone(zone)
	if err != nil {
		return nil, err
	}
	return slices.Clone(keys.Users), nil
}
