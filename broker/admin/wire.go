package admin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/opencluster/oclocks/broker/control"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/conf/shared"
)

// The operations, as in the subject admin.<operation>.<key>.
const (
	opChange = "change"
	opState  = "state"
	opUsers  = "users"
	opViews  = "views"
	opStatus = "status"
	opAlerts = "alerts"
)

const (
	queueGroup = "admin"

	// usersPage and viewsPage are how many come in one answer, so that it fits into a message.
	usersPage = 1000
	viewsPage = 2048
	// alertsKept is how many alerts a node remembers.
	alertsKept = 200
	// maxBy is the length of the longest name of who asks, in bytes.
	maxBy = 128
)

func subject(op, key string) string { return "admin." + op + "." + key }

// parseSubject gives the operation and the key of who asks, which NATS has checked.
func parseSubject(s string) (op, key string, ok bool) {
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return "", "", false
	}
	return parts[1], parts[2], true
}

// request is what every operation takes; each looks at its own fields.
type request struct {
	By      string          `json:"by,omitempty"`      // who asks: a person at a machine
	Command *shared.Command `json:"command,omitempty"` // change
	Zone    string          `json:"zone,omitempty"`    // users
	After   string          `json:"after,omitempty"`   // users: those after this key
	From    uint32          `json:"from,omitempty"`    // views: the first bucket
}

// answer is what comes back: Result, or Problem.
type answer struct {
	Node    string          `json:"node"`              // identifier of who answers
	Kind    string          `json:"kind,omitempty"`    // of the problem: unavailable, request, failed
	Problem string          `json:"problem,omitempty"` // for people
	Result  json.RawMessage `json:"result,omitempty"`
}

// State is the shared configuration without its secrets.
type State struct {
	Change   uint64            `json:"change"` // change ID
	Cluster  string            `json:"cluster"`
	Locked   bool              `json:"locked"`
	Buckets  uint32            `json:"buckets"`
	Nodes    []shared.Node     `json:"nodes"`
	Settings map[string]string `json:"settings"`
	Zones    []Zone            `json:"zones"`
	Pins     []Pin             `json:"pins"`
}

// Zone is one zone of the cluster.
type Zone struct {
	Zone    conf.Zone `json:"zone"`
	Account string    `json:"account"` // public key of its account
	Users   int       `json:"users"`   // those on record, revoked ones too
}

// Pin is a bucket that was moved by hand.
type Pin struct {
	Bucket uint32 `json:"bucket"`
	Number uint64 `json:"number"` // of the node
}

// Node finds a node by its number, its name or its identifier. ErrNotFound of package shared, with those that there are.
func (s *State) Node(name string) (*shared.Node, error) {
	var known []string
	for i := range s.Nodes {
		n := &s.Nodes[i]
		if name == n.ID || name == n.Name || name == fmt.Sprint(n.Number) {
			return n, nil
		}
		known = append(known, fmt.Sprintf("%d (%s)", n.Number, n.Name))
	}
	return nil, fmt.Errorf("node %q: %w: the nodes are %s", name, shared.ErrNotFound, strings.Join(known, ", "))
}

// Zone finds a zone; ok is false if there is none of that name.
func (s *State) Zone(name string) (z Zone, ok bool) {
	for _, z := range s.Zones {
		if z.Zone.Name == name {
			return z, true
		}
	}
	return Zone{}, false
}

// users is a page of a zone's users.
type users struct {
	Users []conf.User `json:"users"`
	More  bool        `json:"more"`
}

// views is a page of the views of the buckets.
type views struct {
	Views []shared.BucketView `json:"views"`
	Next  uint32              `json:"next,omitempty"` // the first bucket of the next page; 0 if this is the last
}

// Status is the cluster as its nodes see it.
type Status struct {
	// Nodes are those that answered, by number, without their copies.
	Nodes []control.Status `json:"nodes"`
}

// Node is the status of the node with that number, nil if it did not answer.
func (s *Status) Node(number uint64) *control.Status {
	for i := range s.Nodes {
		if s.Nodes[i].Number == number {
			return &s.Nodes[i]
		}
	}
	return nil
}

// decode reads JSON strictly: unknown fields and anything behind the end are errors.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is something behind the end")
	}
	return nil
}
