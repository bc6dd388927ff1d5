package natsd

import (
	"fmt"

	"github.com/nats-io/nats-server/v2/server"
)

// Here has what clients of this server publish in a zone on subjects that are keys of the map, which may have wildcards, go to the
// subjects that are their values ({{wildcard(1)}} is the first of what the wildcards stand for). The other servers do not. It stays so
// when the zone's settings change; nil ends it. A queue group of a cluster has no preference for members at the publisher's own server:
// this is how it is given one.
func (s *Server) Here(zone string, to map[string]string) error {
	s.applying.Lock()
	defer s.applying.Unlock()
	id, ok := s.accounts.id(zone)
	if !ok {
		return fmt.Errorf("requests of zone %s: %w", zone, ErrNoZone)
	}
	account, err := s.hereAccount(zone, id)
	if err != nil {
		return err
	}
	for from := range s.here[zone] { // order: each is removed by itself
		account.RemoveMapping(from)
	}
	delete(s.here, zone)
	if len(to) == 0 {
		return nil
	}
	s.here[zone] = to
	return addHere(account, zone, to)
}

// mapHere tells nats-server what Here was told; it forgets that when an account's JWT or the options change. Until then requests
// take the other way. It is called with applying locked.
func (s *Server) mapHere(zone, id string) error {
	if len(s.here[zone]) == 0 {
		return nil
	}
	account, err := s.hereAccount(zone, id)
	if err != nil {
		return err
	}
	return addHere(account, zone, s.here[zone])
}

func (s *Server) hereAccount(zone, id string) (*server.Account, error) {
	account, err := s.ns.LookupAccount(id)
	if err != nil {
		return nil, fmt.Errorf("requests of zone %s: %w", zone, err)
	}
	return account, nil
}

func addHere(account *server.Account, zone string, mappings map[string]string) error {
	for from, to := range mappings { // order: no subject matches two of them
		if err := account.AddMapping(from, to); err != nil {
			return fmt.Errorf("requests of zone %s: %w", zone, err)
		}
	}
	return nil
}
