package core

import "errors"

// Errors of this package; test with errors.Is.
var (
	// ErrConfig: Config or Start cannot be used.
	ErrConfig = errors.New("arbiter: unusable configuration or state")
	// ErrFrame: the bytes are not a frame for this node. Nothing was done.
	ErrFrame = errors.New("arbiter: malformed frame")
	// ErrNotLeader: only a leader that has applied everything from before its term can do this. Nothing was done.
	ErrNotLeader = errors.New("arbiter: not leading")
	// ErrRefused: the condition of a proposal does not hold. Nothing was done.
	ErrRefused = errors.New("arbiter: the condition does not hold")
	// ErrMembership: the change of membership is not possible now. Nothing was done.
	ErrMembership = errors.New("arbiter: membership")
	// ErrBusy: too much is waiting. Nothing was done.
	ErrBusy = errors.New("arbiter: too much is waiting")
	// ErrProposal: the proposal's id or size is out of range. Nothing was done.
	ErrProposal = errors.New("arbiter: unusable proposal")
	// ErrFailed: the node found itself in a state that cannot be; it must not go on.
	ErrFailed = errors.New("arbiter: impossible state")
)
