package natsd

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/opencluster/oclocks/subjects"
)

// DisconnectSubject is where the system account hears of every closed connection of every account and server.
const DisconnectSubject = "$SYS.ACCOUNT.*.DISCONNECT"

// Closed says that a client's connection has ended.
type Closed struct {
	Account  string // id of the account
	Zone     string // "" if the account is not a zone's
	Server   string // id of the server that the connection was on
	CID      uint64 // the connection's number there
	Reason   string // nats-server's word for it
	ByClient bool   // it was closed from the client's side, so whoever held it is gone
	Lane     bool   // by its name it was never the connection of a session, which has another one (subjects.LaneName)
}

// byClient are the reasons that mean that the client's side closed the connection. Read Error and Write Error are what
// nats-server sees of a reset: the kernel of a killed client resets if data had not been read. They do not come from
// mere silence: nats-server keeps TCP's own keep-alive off, and its pings find a stale connection long before TCP gives
// up sending. All other reasons are the server's decision (slow consumer, stale, shutdown, expired or revoked
// credentials, a broken protocol rule); the client behind may well live and come back.
var byClient = []string{server.ClientClosed.String(), server.ReadError.String(), server.WriteError.String()}

// ParseDisconnect reads an event that came on DisconnectSubject. Closed.Zone is not filled in. The end of a leaf node's
// connection is never ByClient: many clients may be behind it. ErrEvent if it is not such an event.
func ParseDisconnect(subject string, data []byte) (Closed, error) {
	tokens := strings.Split(subject, ".")
	if len(tokens) != 4 || tokens[0] != "$SYS" || tokens[1] != "ACCOUNT" || tokens[3] != "DISCONNECT" {
		return Closed{}, fmt.Errorf("%w: subject %q", ErrEvent, subject)
	}
	var event struct {
		Server struct {
			ID string `json:"id"`
		} `json:"server"`
		Client struct {
			ID   uint64 `json:"id"`
			Kind string `json:"kind"`
			Name string `json:"name"`
		} `json:"client"`
		Reason string `json:"reason"`
	}
	if err := json.Unmarshal(data, &event); err != nil {
		return Closed{}, fmt.Errorf("%w: %w", ErrEvent, err)
	}
	if event.Server.ID == "" || event.Client.ID == 0 {
		return Closed{}, fmt.Errorf("%w: it names no connection", ErrEvent)
	}
	return Closed{
		Account:  tokens[2],
		Server:   event.Server.ID,
		CID:      event.Client.ID,
		Reason:   event.Reason,
		ByClient: event.Client.Kind == "Client" && slices.Contains(byClient, event.Reason),
		Lane:     strings.HasPrefix(event.Client.Name, subjects.LaneName),
	}, nil
}

// Closed is ParseDisconnect with the zone filled in; ok is false for connections that are not of a zone's client.
func (s *Server) Closed(subject string, data []byte) (c Closed, ok bool, err error) {
	if c, err = ParseDisconnect(subject, data); err != nil {
		return Closed{}, false, err
	}
	c.Zone, ok = s.ZoneOf(c.Account)
	return c, ok, nil
}
