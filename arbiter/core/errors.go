package core

import "errors"

// Errors of this package; test with errors.Is.
var (
	// ErrConfig: Config or Start cannot be used.
	ErrConfig = errors.New("arbiter core: unusable configuration or state")
	// ErrFrame: the bytes are not a frame for this node. Nothing was done.
	ErrFrame = errors.New("arbiter core: malformed frame")
	// ErrNotLeader: only a leader that has applied everything from before its term can do this. Nothing was done.
	ErrNotLeader = errors.New("arbiter core: not leading")
	// ErrRefused: the condition of a proposal does not hold. Nothing was done.
	ErrRefused = errors.New("arbiter core: the condition does not hold")
	// ErrMembership: the change of membership is not possible now. Nothing was done.
	ErrMembership = errors.New("arbiter core: membership")
	// ErrBusy: too much is waiting. Nothing was done.
	ErrBusy = errors.New("arbiter core: too much is waiting")
	// ErrProposal: the proposal's id or size is out of range. Nothing was done.
	ErrProposal = errors.New("arbiter core: unusable proposal")
	// ErrFailed: the node found itself in a state that cannot be; it must not go on.
	ErrFailed = errors.New("arbiter core: impossible state")
)
