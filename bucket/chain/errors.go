package chain

import "errors"

var (
	// ErrView says that a view cannot be one; nothing was changed.
	ErrView = errors.New("the view is not valid")

	// ErrConfig says that a setting is missing or out of its range.
	ErrConfig = errors.New("the configuration is not valid")

	// ErrDamaged says that the changes given to New do not make one history: each has to follow the one before by number
	// and hash.
	ErrDamaged = errors.New("the stored history is damaged")

	// ErrNotPrimary says that this copy is not the primary of its newest view, or may not act as one yet or any more: a new
	// epoch was heard of, it has been sealed, or it has failed.
	ErrNotPrimary = errors.New("this copy is not the acting primary")

	// ErrNoLease says that the node's lease has ended, or was granted under a change that is not applied here yet.
	ErrNoLease = errors.New("the node holds no lease")

	// ErrFull says that as much as Limits allow waits for confirmation. Propose again once Confirmed has risen.
	ErrFull = errors.New("too much is waiting for confirmation")

	// ErrTooLarge says that a change or a snapshot is larger than Limits allow.
	ErrTooLarge = errors.New("too large for the chain")

	// ErrHandOver says that the primary is handing over: ask its successor.
	ErrHandOver = errors.New("the bucket is being handed over")

	// ErrMember says that a node is not a member of the chain, or not one that this can be asked of.
	ErrMember = errors.New("no such member")

	// ErrMisdirected says that a message is for another bucket or node, or was not sent by the node that it names.
	ErrMisdirected = errors.New("the message is not for this copy")

	// ErrSnapshot says that no snapshot was asked for, or not of this state.
	ErrSnapshot = errors.New("no such snapshot is wanted")

	// ErrMessage says that the bytes of a message are damaged, or not a message.
	ErrMessage = errors.New("not a message of the chain")

	// ErrTooFewSealed says that the reports are not enough to know what was answered. More members have to be sealed.
	ErrTooFewSealed = errors.New("too few members are sealed")

	// ErrNoCopy says that nobody reported who could be primary, so the view has to stay as it is.
	ErrNoCopy = errors.New("no copy of the bucket is left")

	// ErrFork says that the copy is not in a state to be forked.
	ErrFork = errors.New("the chain cannot be forked here")
)
