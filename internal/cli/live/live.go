package live

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/opencluster/oclocks/internal/cli/output"
)

const (
	keyCtrlC = 3
	keyCtrlD = 4
	// plainRows is how many lines of content a printed frame may have.
	plainRows = 50
)

// Frame is what one look at the broker gave.
type Frame interface {
	// Lines draws it in width columns and height lines; the second one is the one that trouble takes the place of. 0 cuts
	// nothing, or leaves nothing out.
	Lines(width, height int) []string
	// Print prints it as JSON.
	Print(p *output.Printer) error
	// Taken is when it was looked.
	Taken() time.Time
}

// Options says how to show.
type Options struct {
	Out     *os.File
	Printer *output.Printer // prints to Out; asked whether to print JSON
	Every   time.Duration   // between frames
	Timeout time.Duration   // for what one frame asks
	Once    bool            // one frame, printed
	Heading int             // lines of a frame that are no rows
	// Look makes a frame with room for so many rows.
	Look func(ctx context.Context, rows int) (Frame, error)
}

// Run shows frames until ctx ends or, on a terminal, somebody types q; neither is an error. It redraws in place where Out
// is a terminal, and prints otherwise, for Once, and for JSON. A broker that does not answer is an error of the first frame
// only: later the view says so, and goes on.
func Run(ctx context.Context, o Options) error {
	if o.Once || o.Printer.JSON || !term.IsTerminal(int(o.Out.Fd())) {
		return stream(ctx, &o)
	}
	frame, err := look(ctx, &o, plainRows)
	if err != nil {
		return err
	}
	s, err := openScreen(o.Out)
	if err != nil {
		return err
	}
	defer s.close()
	return redraw(ctx, &o, s, frame)
}

// outcome is what came of one attempt to make a frame.
type outcome struct {
	frame Frame
	err   error
}

// redraw draws until it is told to end. Frames are made beside it, one at a time, so that a broker that does not answer
// keeps nobody from typing q.
func redraw(ctx context.Context, o *Options, s *screen, frame Frame) error {
	ctx, cancel := context.WithCancel(ctx)
	outcomes, looking := make(chan outcome, 1), false
	defer func() {
		cancel()
		if looking {
			<-outcomes
		}
	}()
	every := time.NewTicker(o.Every)
	defer every.Stop()
	trouble := ""
	for {
		width, height := s.size()
		if err := s.draw(screenful(frame, o, trouble, width, height)); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case key := <-s.keys:
			if key == 'q' || key == 'Q' || key == keyCtrlC || key == keyCtrlD {
				return nil
			}
		case <-s.resized:
		case <-every.C:
			if !looking {
				looking = true
				go func() {
					frame, err := look(ctx, o, height-o.Heading)
					outcomes <- outcome{frame, err}
				}()
			}
		case l := <-outcomes:
			looking = false
			switch {
			case l.err == nil:
				frame, trouble = l.frame, ""
			default:
				trouble = "as of " + frame.Taken().Format(time.TimeOnly) + ": " + l.err.Error()
			}
		}
	}
}

// screenful is a frame with its last line for the keys, and with trouble in place of the summary.
func screenful(frame Frame, o *Options, trouble string, width, height int) []string {
	lines := frame.Lines(width, max(height-1, o.Heading))
	if trouble != "" && len(lines) > 1 {
		lines[1] = output.Cut(output.Text(trouble), width)
	}
	return append(lines, output.Cut("q quits", width))
}

// stream prints frames one after the other.
func stream(ctx context.Context, o *Options) error {
	every := time.NewTicker(o.Every)
	defer every.Stop()
	for first := true; ; first = false {
		frame, err := look(ctx, o, plainRows)
		if err != nil {
			if ctx.Err() != nil && !first {
				return nil
			}
			return err
		}
		if err := printFrame(frame, o, first); err != nil || o.Once {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
	}
}

func printFrame(frame Frame, o *Options, first bool) error {
	if o.Printer.JSON {
		return frame.Print(o.Printer)
	}
	text := strings.Join(frame.Lines(0, plainRows+o.Heading), "\n") + "\n"
	if !first {
		text = "\n" + text
	}
	if _, err := o.Out.WriteString(text); err != nil {
		return fmt.Errorf("%w: %w", output.ErrWrite, err)
	}
	return nil
}

func look(ctx context.Context, o *Options, rows int) (Frame, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	return o.Look(ctx, rows)
}
