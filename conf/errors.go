package conf

import (
	"errors"
	"strings"
)

var (
	// ErrNotFound says that what was named (a zone, a user, the cluster's certificate) does not exist.
	ErrNotFound = errors.New("not found")
	// ErrExists says that the zone that was to be added exists already.
	ErrExists = errors.New("exists already")
	// ErrTooMany says that a limit on what is kept (users of a zone) is reached.
	ErrTooMany = errors.New("too many")
	// ErrToken says that what should be a join token is none.
	ErrToken = errors.New("not a valid join token")
	// ErrExpired says that a join token was valid once.
	ErrExpired = errors.New("the join token expired")
	// ErrForeign says that a data directory has keys that are not those of the cluster.
	ErrForeign = errors.New("it has the keys of another cluster")
	// ErrUnsafeFile says that a file with secrets can be read by others than its owner.
	ErrUnsafeFile = errors.New("file can be read by others")
)

// KeyError says which setting is wrong, why, and what to do about it.
type KeyError struct {
	Key     string // as in the file, e.g. max_lease, zones[orders].role
	Source  string // where the value came from: --listen, OCLOCKS_LISTEN, /etc/oclocks.yaml:12; "" if unknown
	Problem string // what is wrong with the value
	Fix     string // what was expected, and what to do
}

// Error is "source: key: problem: fix".
func (e *KeyError) Error() string {
	parts := make([]string, 0, 4)
	for _, p := range []string{e.Source, e.Key, e.Problem, e.Fix} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, ": ")
}
