package local

import "errors"

var (
	// ErrInUse says that another process runs the cluster of that directory.
	ErrInUse = errors.New("is run by another process")
	// ErrPort says that somebody listens on a port that a node needs.
	ErrPort = errors.New("is not free")
	// ErrNodes says that the directory has more nodes than were asked for.
	ErrNodes = errors.New("has more nodes")
	// ErrEnded says that nodes have ended by themselves.
	ErrEnded = errors.New("ended by itself")
)
