package conf

import (
	"fmt"
	"slices"
	"strings"

	"github.com/opencluster/oclocks/subjects"
)

// Role is what a user may do in its zone. Each role includes the ones before it.
type Role string

// The roles.
const (
	RoleViewer Role = "viewer" // looks: query, list, check, info, servers, ping, cluster
	RoleUser   Role = "user"   // and takes locks: acquire, release, renew, cancel, reclaim, sessions
	RoleAdmin  Role = "admin"  // and takes them away: force
)

// Roles are all roles, the weakest first.
func Roles() []Role { return []Role{RoleViewer, RoleUser, RoleAdmin} }

var (
	viewerOps = []subjects.Op{
		subjects.OpQuery, subjects.OpList, subjects.OpCheck, subjects.OpInfo, subjects.OpServers, subjects.OpPing,
		subjects.OpCluster,
	}
	userOps = []subjects.Op{
		subjects.OpAcquire, subjects.OpRelease, subjects.OpRenew, subjects.OpCancel, subjects.OpReclaim,
		subjects.OpSessionOpen, subjects.OpSessionClose, subjects.OpKeep,
	}
	adminOps = []subjects.Op{subjects.OpForce}
)

// Ops are the operations that the role may use, none for a role that does not exist.
func (r Role) Ops() []subjects.Op {
	switch r {
	case RoleViewer:
		return slices.Clone(viewerOps)
	case RoleUser:
		return slices.Concat(viewerOps, userOps)
	case RoleAdmin:
		return slices.Concat(viewerOps, userOps, adminOps)
	}
	return nil
}

// Allows says whether the role may use the operation.
func (r Role) Allows(op subjects.Op) bool { return slices.Contains(r.Ops(), op) }

// ParseRole finds the role of that name.
func ParseRole(name string) (Role, error) {
	if r := Role(name); slices.Contains(Roles(), r) {
		return r, nil
	}
	return "", fmt.Errorf("%q is not a role: expected viewer, user or admin", name)
}

// MaxNameLen is the length of the longest name of a zone or user, in characters.
const MaxNameLen = 64

// checkName accepts what is readable and safe as one token of a NATS subject.
func checkName(name string) error {
	const expected = "expected 1 to 64 of the characters A-Z a-z 0-9 _ -, the first a letter or digit"
	if name == "" || len(name) > MaxNameLen {
		return fmt.Errorf("a name of %d characters: %s", len(name), expected)
	}
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '_' && c != '-') {
			return fmt.Errorf("%q has %q in it: %s", name, c, expected)
		}
	}
	return nil
}

// CheckUserName refuses names that cannot be a user's.
func CheckUserName(name string) error {
	if strings.EqualFold(name, subjects.Anyone) {
		return fmt.Errorf("%q is what callers without a name are called: choose another", name)
	}
	return checkName(name)
}

// CheckZoneName refuses names that cannot be a zone's.
func CheckZoneName(name string) error {
	if strings.EqualFold(name, systemName) || strings.EqualFold(name, nodesName) {
		return fmt.Errorf("%q is the name of an account of the broker itself: choose another", name)
	}
	return checkName(name)
}
