package bucket

import "errors"

var (
	// ErrChange says that a change cannot be applied to this table: it is malformed, not the next one, or does not fit what
	// the table has. The table may have applied a part of it and must be thrown away.
	ErrChange = errors.New("bucket: change does not fit the table")

	// ErrSnapshot says that a snapshot is malformed or contradicts itself, or that the table is not a new one. The table
	// must be thrown away.
	ErrSnapshot = errors.New("bucket: malformed snapshot")

	// ErrTerm says that the term of a Promote is not higher than the table's. Nothing has changed.
	ErrTerm = errors.New("bucket: term is not higher than the table's")

	// ErrPrimary says that the table is primary and applies nobody else's changes. Nothing has changed.
	ErrPrimary = errors.New("bucket: table is primary")

	// ErrBroken says that the table has contradicted itself, which is a defect of this package. It answers everything with
	// 503 from then on and must be thrown away.
	ErrBroken = errors.New("bucket: table contradicts itself")
)
