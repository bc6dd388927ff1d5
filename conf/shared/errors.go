package shared

import "errors"

// What is wrong with a command. A refused command has changed nothing.
var (
	// ErrCommand says that the bytes are no command.
	ErrCommand = errors.New("not a command")
	// ErrValue says that a value is out of its range, or does not fit the others.
	ErrValue = errors.New("not valid")
	// ErrLocked says that the configuration is locked.
	ErrLocked = errors.New("the configuration is locked")
	// ErrNotFound says that what was named does not exist.
	ErrNotFound = errors.New("not found")
	// ErrExists says that what was to be made, or a name that has to be another, exists.
	ErrExists = errors.New("exists already")
	// ErrTooMany says that a limit is reached.
	ErrTooMany = errors.New("too many")
	// ErrStale says that the state is not any more what the command expects it to be.
	ErrStale = errors.New("overtaken by another change")
	// ErrRemoved says that a node that was removed came back with its old control store.
	ErrRemoved = errors.New("the node was removed from the cluster")
	// ErrLease says that a node has another node_lease than the cluster.
	ErrLease = errors.New("another node_lease than the cluster's")
	// ErrOldDisk says that what a node has on its disk is older than its last start: it must throw its control store away
	// and register with a new one.
	ErrOldDisk = errors.New("the node's disk is older than its last start")
	// ErrLevel says that a command, or a node's program, does not fit the level by which the cluster's nodes apply commands.
	ErrLevel = errors.New("not of the cluster's level")
	// ErrOldProgram says that this program must not apply anything any more: the cluster's level is above what it knows.
	ErrOldProgram = errors.New("this program is too old for its cluster")
	// ErrSnapshot says that the bytes given to Restore are no snapshot.
	ErrSnapshot = errors.New("not a snapshot")
)

// kinds gives each error a name that can be sent to another node.
var kinds = []struct {
	name string
	err  error
}{
	{"command", ErrCommand}, {"value", ErrValue}, {"locked", ErrLocked}, {"not_found", ErrNotFound}, {"exists", ErrExists},
	{"too_many", ErrTooMany}, {"stale", ErrStale}, {"removed", ErrRemoved}, {"old_disk", ErrOldDisk},
	{"lease", ErrLease}, {"level", ErrLevel},
}

// Result is what came of a command.
type Result struct {
	Change  uint64   `json:"change"`            // its change ID
	Kind    string   `json:"kind,omitempty"`    // why it was refused: command, value, locked, …; "" if it was not
	Problem string   `json:"problem,omitempty"` // the same for people
	Number  uint64   `json:"number,omitempty"`  // register: the node's number
	Life    uint64   `json:"life,omitempty"`    // register: the node's life
	Taken   []uint32 `json:"taken,omitempty"`   // views: the buckets whose view was committed
}

// Err is nil, or the reason why the command was refused, for errors.Is with the errors of this package.
func (r Result) Err() error {
	if r.Kind == "" {
		return nil
	}
	return &refusal{r.Kind, r.Problem}
}

type refusal struct{ kind, problem string }

func (e *refusal) Error() string { return e.problem }

// Is makes a refusal that came from another node be the error that it was there.
func (e *refusal) Is(target error) bool {
	for _, k := range kinds {
		if k.name == e.kind {
			return target == k.err
		}
	}
	return false
}

// Refused is the result of a command that is refused before it is proposed.
func Refused(err error) Result { return Result{}.refuse(err) }

// refuse makes err the result's reason.
func (r Result) refuse(err error) Result {
	r.Kind, r.Problem = "value", err.Error()
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			r.Kind = k.name
			break
		}
	}
	return r
}
