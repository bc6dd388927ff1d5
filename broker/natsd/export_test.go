package natsd

import "github.com/nats-io/nats.go"

// ConnectZone is OpenZone with nats.go, which the tests look at zones with.
func (s *Server) ConnectZone(zone string, opts ...nats.Option) (*nats.Conn, error) {
	creds, err := s.zoneUser(zone)
	if err != nil {
		return nil, err
	}
	return s.connect(zone, "oclocks "+zone, creds, opts)
}
