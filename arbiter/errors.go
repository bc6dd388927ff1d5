package arbiter

import (
	"errors"

	"github.com/opencluster/oclocks/arbiter/core"
)

// Errors of this package; test with errors.Is.
var (
	// ErrConfig: the configuration, or what the store has, cannot be used.
	ErrConfig = core.ErrConfig
	// ErrUnknown: a proposal was begun and its outcome is not known: it may take effect later, or never; at most once.
	ErrUnknown = errors.New("arbiter: the outcome is unknown")
	// ErrBusy: too much is waiting. Nothing was done.
	ErrBusy = core.ErrBusy
	// ErrClosed: the arbiter was closed before anything was done.
	ErrClosed = errors.New("arbiter: closed")
	// ErrNotLeader: only the leader can do this, and this node does not lead (any more). Nothing was done.
	ErrNotLeader = core.ErrNotLeader
	// ErrRefused: the condition of a proposal does not hold. It has no effect.
	ErrRefused = core.ErrRefused
	// ErrMembership: the change of the membership is not possible now; the text says why. Nothing was done.
	ErrMembership = core.ErrMembership
	// ErrProposal: a command is too long. Nothing was done.
	ErrProposal = core.ErrProposal
	// ErrFailed: the arbiter has stopped because it could not go on safely (its store, or an impossible state). Err says why.
	ErrFailed = errors.New("arbiter: failed")
	// ErrStore: the store is damaged, of another format, in use, or cannot be read or written.
	ErrStore = errors.New("arbiter: store")
)
