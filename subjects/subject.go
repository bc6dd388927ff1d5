package subjects

import (
	"fmt"
	"strconv"
	"strings"
)

// The builders below do not check their arguments: a user, a node and an id must each be a ValidToken. Where one is meant
// for a subscription or a permission, it may be "*" or a template such as "{{subject()}}" as well.

// HotSubject is where user asks the primary of a bucket itself: locks.b.<bucket>.<op>.<user>.
func HotSubject(bucket uint32, op Op, user string) string {
	b := make([]byte, 0, 64)
	b = append(b, "locks.b."...)
	b = strconv.AppendUint(b, uint64(bucket), 10)
	b = append(b, '.')
	b = append(b, op.String()...)
	b = append(b, '.')
	return string(append(b, user...))
}

// SimpleSubject is where user asks any node: locks.<op>.<user>.
func SimpleSubject(op Op, user string) string {
	return root + op.String() + "." + user
}

// UnnamedSubject is where callers without a name of their own ask any node: locks.<op>. There is none for force.
func UnnamedSubject(op Op) string {
	return root + op.String()
}

// KeepNodeSubject is where user sends a keep-alive for one node: locks.keep.<node>.<user>.
func KeepNodeSubject(node, user string) string {
	return "locks.keep." + node + "." + user
}

// HotPattern is what the primary of a bucket subscribes to: locks.b.<bucket>.*.*.
func HotPattern(bucket uint32) string {
	return "locks.b." + strconv.FormatUint(uint64(bucket), 10) + ".*.*"
}

// SimplePattern is what every node subscribes to for an operation: locks.<op>.*.
func SimplePattern(op Op) string {
	return SimpleSubject(op, "*")
}

// KeepNodePattern is what a node subscribes to for keep-alives of its own: locks.keep.<node>.*.
func KeepNodePattern(node string) string {
	return KeepNodeSubject(node, "*")
}

// HotPermission is what a user is allowed to publish on for an operation of every bucket: locks.b.*.<op>.<user>.
func HotPermission(op Op, user string) string {
	return "locks.b.*." + op.String() + "." + user
}

// SessionEventSubject is where the events of a session are published; id is its public id, or "*" for all of the user's.
func SessionEventSubject(user, id string) string {
	return "locks.event.session." + user + "." + id
}

// LockEventSubject is where a lock event of a type (granted, released, …) is published.
func LockEventSubject(eventType string, bucket uint32) string {
	return "locks.event.lock." + eventType + "." + strconv.FormatUint(uint64(bucket), 10)
}

// ServerEventSubject is where a change of the server list is published; the type is up, down or changed.
func ServerEventSubject(eventType, node string) string {
	return "locks.event.server." + eventType + "." + node
}

// ClusterEventSubject is where a change of the cluster is published; the type is up, down or mode.
func ClusterEventSubject(eventType string) string {
	return "locks.event.cluster." + eventType
}

// LaneName begins the name (of CONNECT) of a connection that is no session's, but a further one of a client whose session has another:
// nothing ends with it, and the broker looks for nothing that does.
const LaneName = "oclocks-lane "

// What to subscribe to for all events of a family.
const (
	LockEvents    = "locks.event.lock.*.*"
	ServerEvents  = "locks.event.server.*.*"
	ClusterEvents = "locks.event.cluster.*"
)

// EventFamily is the third token of an event's subject. The zero EventFamily is none.
type EventFamily uint8

// The families.
const (
	FamilyServer  EventFamily = iota + 1 // locks.event.server.<type>.<node>
	FamilyCluster                        // locks.event.cluster.<type>
	FamilyLock                           // locks.event.lock.<type>.<bucket>
	FamilySession                        // locks.event.session.<user>.<id>
)

// EventAddress is an event's subject taken apart.
type EventAddress struct {
	Family EventFamily
	Type   string // all but FamilySession, where the body tells it
	Node   string // FamilyServer
	Bucket uint32 // FamilyLock
	User   string // FamilySession
	ID     string // FamilySession
}

// ParseEvent takes the subject of an event apart without allocating. It returns ErrSubject for one that is none.
func ParseEvent(subject string) (EventAddress, error) {
	var t [4]string
	rest, ok := strings.CutPrefix(subject, "locks.event.")
	n := split(rest, &t)
	switch {
	case !ok:
	case n == 3 && t[0] == "server":
		return EventAddress{Family: FamilyServer, Type: t[1], Node: t[2]}, nil
	case n == 2 && t[0] == "cluster":
		return EventAddress{Family: FamilyCluster, Type: t[1]}, nil
	case n == 3 && t[0] == "lock":
		if bucket, valid := parseBucket(t[2]); valid {
			return EventAddress{Family: FamilyLock, Type: t[1], Bucket: bucket}, nil
		}
	case n == 3 && t[0] == "session":
		return EventAddress{Family: FamilySession, User: t[1], ID: t[2]}, nil
	}
	return EventAddress{}, fmt.Errorf("%w: %.80q is no event", ErrSubject, subject)
}
