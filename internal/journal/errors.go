package journal

import "errors"

var (
	// ErrLocked says that another process (or this one) has the directory open.
	ErrLocked = errors.New("the journal is in use")

	// ErrCorrupt says that records which had been stored are damaged or missing, which no crash explains. The message names
	// the file, the place in it and what to do. Open has changed nothing.
	ErrCorrupt = errors.New("the journal is damaged")

	// ErrVersion says that the files were written by a newer version of this program. Open has changed nothing.
	ErrVersion = errors.New("the journal has an unknown format")

	// ErrFailed says that a write or an fsync has failed, now or before: nothing can be appended any more and the process
	// has to open the journal anew. The error of the system is wrapped beside it.
	ErrFailed = errors.New("the journal has failed")

	// ErrClosed says that Close was called before.
	ErrClosed = errors.New("the journal is closed")

	// ErrTooLarge says that a change is over MaxChange or a snapshot over MaxSnapshot; nothing of its batch was written.
	ErrTooLarge = errors.New("the record is too large")

	// ErrSequence says that the changes of a bucket do not follow each other by one. What the caller has in memory and what
	// is on disk differ then, so the journal fails: the error is ErrFailed as well.
	ErrSequence = errors.New("the change is out of sequence")

	errKind = errors.New("only changes and snapshots can be appended")
)
