package arbiter

import "errors"

// Errors of this package; test with errors.Is.
var (
	// ErrConfig: the configuration cannot be used.
	ErrConfig = errors.New("arbiter: unusable configuration")
	// ErrUnknown: a proposal was handed on and its outcome is not known: it may take effect later, or never, at most once.
	ErrUnknown = errors.New("arbiter: the outcome of the proposal is unknown")
	// ErrBusy: too much is waiting. Nothing was done.
	ErrBusy = errors.New("arbiter: too much is waiting")
	// ErrClosed: the arbiter was closed before anything was done.
	ErrClosed = errors.New("arbiter: closed")
	// ErrNotLeader: only the leader can do this, and this node does not lead (any more). Nothing was done.
	ErrNotLeader = errors.New("arbiter: not the leader")
	// ErrRefused: the condition of a proposal did not hold. It takes no effect.
	ErrRefused = errors.New("arbiter: the condition of the proposal does not hold")
	// ErrMembership: the change of the membership is not possible now; the text says why. Nothing was done.
	ErrMembership = errors.New("arbiter: membership")
	// ErrFailed: the arbiter has stopped because it could not go on safely (its store, or an impossible state). Err says why.
	ErrFailed = errors.New("arbiter: failed")
	// ErrStore: the store is damaged, of another format, or cannot be read or written.
	ErrStore = errors.New("arbiter: store")
)
