package natsd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/opencluster/oclocks/conf"
)

// claimsTimeout is how long this server may take to take over an account's new JWT.
const claimsTimeout = 10 * time.Second

// ZoneOf is the zone whose account that is; ok is false if it is none of a zone.
func (s *Server) ZoneOf(accountID string) (zone string, ok bool) { return s.accounts.zone(accountID) }

// AccountID is the id of a zone's account. ErrNoZone if it is not served.
func (s *Server) AccountID(zone string) (string, error) {
	if id, ok := s.accounts.id(zone); ok {
		return id, nil
	}
	return "", fmt.Errorf("account of zone %s: %w", zone, ErrNoZone)
}

// ApplyZones makes these the zones that are served: new ones get keys and an account, changed ones take their new
// settings, and with them everything that changed in Auth (revoked users), and those that are missing are removed, which
// closes the connections of their clients and the broker's own. Clients whose permissions change are disconnected; for
// none of them that counts as closed by the client. ErrRestart if another zone than at the start is to be open; then
// nothing was changed. After another error a second call with the same zones completes the change.
func (s *Server) ApplyZones(ctx context.Context, zones []conf.Zone) error {
	s.applying.Lock()
	defer s.applying.Unlock()
	if s.isStopping() {
		return fmt.Errorf("apply zones: %w", ErrStopping)
	}
	type update struct{ zone, id, token string }
	updates := make([]update, 0, len(zones))
	gone := s.accounts.zoneIDs()
	for _, z := range zones {
		if z.Open && z.Name != s.open {
			return fmt.Errorf("open zone %s: %w, because connections without credentials are bound at the start", z.Name, ErrRestart)
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
		errs = append(errs, s.removeZone(ctx, gone[id], id))
	}
	for _, u := range updates {
		s.accounts.put(u.zone, u.id, u.token)
		if err := s.claims(ctx, u.id, u.token); err != nil {
			errs = append(errs, fmt.Errorf("update zone %s: %w", u.zone, err))
		}
	}
	return errors.Join(errs...)
}

// removeZone drops an account's clients on every server: its last JWT revokes them all and allows none.
func (s *Server) removeZone(ctx context.Context, zone, id string) error {
	token, err := s.cfg.Auth.Tombstone(id)
	if err != nil {
		return fmt.Errorf("remove zone %s: %w", zone, err)
	}
	s.closeOwn(zone)
	if err := s.claims(ctx, id, token); err != nil {
		return fmt.Errorf("remove zone %s: %w", zone, err)
	}
	s.accounts.remove(id)
	return nil
}

// claims sends an account's new JWT to all servers and waits until this one has taken it.
func (s *Server) claims(ctx context.Context, id, token string) error {
	ctx, cancel := context.WithTimeout(ctx, claimsTimeout)
	defer cancel()
	answers := s.sys.NewRespInbox()
	sub, err := s.sys.SubscribeSync(answers)
	if err != nil {
		return err
	}
	defer func() {
		if err := sub.Unsubscribe(); err != nil && !s.isStopping() {
			s.log.Warn("end of a request to update an account", "error", err)
		}
	}()
	if err := s.sys.PublishRequest("$SYS.REQ.ACCOUNT."+id+".CLAIMS.UPDATE", answers, []byte(token)); err != nil {
		return err
	}
	for {
		msg, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return err
		}
		var answer server.ServerAPIClaimUpdateResponse
		if err := json.Unmarshal(msg.Data, &answer); err != nil {
			return fmt.Errorf("answer of the NATS server: %w", err)
		}
		if answer.Server == nil || answer.Server.ID != s.ID() {
			continue
		}
		if answer.Error != nil {
			return fmt.Errorf("the NATS server refuses the account: %s", answer.Error.Description)
		}
		return nil
	}
}
