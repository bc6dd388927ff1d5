package top

import (
	"context"
	"os"
	"time"

	"github.com/opencluster/oclocks/internal/cli/live"
	"github.com/opencluster/oclocks/internal/cli/output"
)

// Options says how to show.
type Options struct {
	Out     *os.File
	Printer *output.Printer // prints to Out; asked whether to print JSON
	Prefix  string
	Every   time.Duration // between frames
	Timeout time.Duration // for what one frame asks
	Once    bool          // one frame, printed
	Now     func() time.Time
}

// Run shows frames: see live.Run.
func Run(ctx context.Context, source Source, o Options) error {
	return live.Run(ctx, live.Options{
		Out: o.Out, Printer: o.Printer, Every: o.Every, Timeout: o.Timeout, Once: o.Once, Heading: heading,
		Look: func(ctx context.Context, rows int) (live.Frame, error) {
			return Gather(ctx, source, o.Prefix, rows, o.Now)
		},
	})
}

// Lines is Lines.
func (f *Frame) Lines(width, height int) []string { return Lines(f, width, height) }

// Taken is when it was looked.
func (f *Frame) Taken() time.Time { return f.At }

// Print prints a line for each lock.
func (f *Frame) Print(p *output.Printer) error {
	for i := range f.Locks {
		if err := p.Body(&f.Locks[i]); err != nil {
			return err
		}
	}
	return nil
}
