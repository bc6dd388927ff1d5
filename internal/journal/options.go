package journal

import (
	"log/slog"
	"time"

	"github.com/opencluster/oclocks/internal/boottime"
)

// Sync says when Append returns.
type Sync uint8

// The ways of Sync.
const (
	Background Sync = iota // after write(2); a goroutine calls fsync once in SyncEvery
	Always                 // after fsync; concurrent callers share one
)

// Options of a journal; the zero value is ready for use.
type Options struct {
	Sync         Sync
	SyncEvery    time.Duration          // at most this time between write and fsync in Background mode; 0: 1 s
	SegmentBytes int64                  // a new segment is begun soon after one has grown to this; 0: 256 MiB
	CompactBytes int64                  // compaction is never wanted below this, with few segments; 0: 64 MiB
	Logger       *slog.Logger           // nil: nothing is logged
	BootID       func() (string, error) // identifies this start of the machine; nil: boottime.BootID
	FS           FS                     // nil: the operating system's
	Driven       bool                   // there is no goroutine: whoever opened it calls Turn, as simulators do

	partBytes, writeBytes int // 0: partSize and writeSize; less in tests
}

func (o Options) withDefaults() Options {
	if o.SyncEvery <= 0 {
		o.SyncEvery = time.Second
	}
	if o.SegmentBytes <= 0 {
		o.SegmentBytes = 256 << 20
	}
	if o.CompactBytes <= 0 {
		o.CompactBytes = 64 << 20
	}
	if o.partBytes <= 0 {
		o.partBytes = partSize
	}
	if o.writeBytes <= 0 {
		o.writeBytes = writeSize
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.BootID == nil {
		o.BootID = boottime.BootID
	}
	if o.FS == nil {
		o.FS = osFS{}
	}
	return o
}
