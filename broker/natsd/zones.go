package natsd

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"

	"github.com/opencluster/oclocks/conf"
)

// ZoneOf is the zone whose account that is; ok is false if it is none of a zone.
func (s *Server) ZoneOf(accountID string) (zone string, ok bool) { return s.accounts.zone(accountID) }

// AccountID is the id of a zone's account. ErrNoZone if it is not served.
func (s *Server) AccountID(zone string) (string, error) {
	if id, ok := s.accounts.id(zone); ok {
		return id, nil
	}
	return "", fmt.Errorf("account of zone %s: %w", zone, ErrNoZone)
}

// ApplyZones makes these the zones that this server serves; in a cluster each daemon does it for its own, and it is the
// same whether one or all do, and how often: new ones get keys and an account, changed ones take their new
// settings, and with them everything that changed in Auth (revoked users), and those that are missing are removed, which
// closes the connections of their clients and the broker's own. Clients whose permissions change are disconnected; for
// none of them that counts as closed by the client. After an error a second call with the same zones completes the change.
func (s *Server) ApplyZones(ctx context.Context, zones []conf.Zone) error {
	s.applying.Lock()
	defer s.applying.Unlock()
	if s.isStopping() {
		return fmt.Errorf("apply zones: %w", ErrStopping)
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("apply zones: %w", err)
	}
	type update struct{ zone, id, token string }
	updates := make([]update, 0, len(zones))
	gone, open := s.accounts.zoneIDs(), s.open
	for _, z := range zones {
		if z.Open {
			open = z.Name
		}
		id, token, err := zoneAccount(s.cfg.Auth, z)
		if err != nil {
			return fmt.Errorf("apply zones: %w", err)
		}
		updates = append(updates, update{z.Name, id, token})
		delete(gone, id)
	}
	var errs []error
	for _, id := range slices.Sorted(maps.Keys(gone)) {
		errs = append(errs, s.removeZone(gone[id], id))
	}
	for _, u := range updates {
		s.accounts.put(u.zone, u.id, u.token)
		if err := s.claims(u.id, u.token); err != nil {
			errs = append(errs, fmt.Errorf("update zone %s: %w", u.zone, err))
		}
		errs = append(errs, s.mapHere(u.zone, u.id))
	}
	if open != s.open {
		errs = append(errs, s.openZone(open))
	}
	return errors.Join(errs...)
}

// openZone makes connections without credentials land in that zone. It is called with applying locked.
func (s *Server) openZone(zone string) error {
	sentinel, err := s.cfg.Auth.Sentinel(zone)
	if err == nil {
		err = s.reload(func(opts *server.Options) { opts.DefaultSentinel = sentinel })
	}
	if err != nil {
		return fmt.Errorf("open zone %s: %w", zone, err)
	}
	s.open = zone
	return nil
}

// removeZone drops an account's clients: its last JWT revokes them all and allows none.
func (s *Server) removeZone(zone, id string) error {
	token, err := s.cfg.Auth.Tombstone(id)
	if err != nil {
		return fmt.Errorf("remove zone %s: %w", zone, err)
	}
	delete(s.here, zone)
	s.closeOwn(zone)
	if err := s.claims(id, token); err != nil {
		return fmt.Errorf("remove zone %s: %w", zone, err)
	}
	s.accounts.remove(id)
	return nil
}

// claims makes this server take over an account's new JWT. The other servers of a cluster do the same by themselves when
// they learn of the change: a server that is behind must not put its older claims in the place of their newer ones.
func (s *Server) claims(id, token string) error {
	claims, err := jwt.DecodeAccountClaims(token)
	if err != nil {
		return fmt.Errorf("read the account's new JWT: %w", err)
	}
	account, err := s.ns.LookupAccount(id) // as it is, or with the new JWT if nobody has used it yet
	if err != nil {
		return fmt.Errorf("find the account: %w", err)
	}
	s.ns.UpdateAccountClaims(account, claims)
	return nil
}
