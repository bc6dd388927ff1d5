package top

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
	// plainRows is how many locks a printed frame has.
	plainRows = 50
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

// Run shows frames until ctx ends or, on a terminal, somebody types q; neither is an error. It redraws in place where Out
// is a terminal, and prints otherwise, for Once, and for JSON. A broker that does not answer is an error of the first frame
// only: later the view says so, and goes on.
func Run(ctx context.Context, source Source, o Options) error {
	if o.Once || o.Printer.JSON || !term.IsTerminal(int(o.Out.Fd())) {
		return stream(ctx, source, &o)
	}
	frame, err := gather(ctx, source, &o, plainRows)
	if err != nil {
		return err
	}
	s, err := openScreen(o.Out)
	if err != nil {
		return err
	}
	defer s.close()
	return live(ctx, source, &o, s, frame)
}

// look is what came of one attempt to gather a frame.
type look struct {
	frame *Frame
	err   error
}

// live draws until it is told to end. Frames are gathered beside it, one at a time, so that a broker that does not answer
// keeps nobody from typing q.
func live(ctx context.Context, source Source, o *Options, s *screen, frame *Frame) error {
	ctx, cancel := context.WithCancel(ctx)
	looks, looking := make(chan look, 1), false
	defer func() {
		cancel()
		if looking {
			<-looks
		}
	}()
	every := time.NewTicker(o.Every)
	defer every.Stop()
	trouble := ""
	for {
		width, height := s.size()
		if err := s.draw(screenful(frame, trouble, width, height)); err != nil {
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
					frame, err := gather(ctx, source, o, height-heading)
					looks <- look{frame, err}
				}()
			}
		case l := <-looks:
			looking = false
			switch {
			case l.err == nil:
				frame, trouble = l.frame, ""
			default:
				trouble = "as of " + frame.At.Format(time.TimeOnly) + ": " + l.err.Error()
			}
		}
	}
}

// screenful is a frame with its last line for the keys, and with trouble in place of the summary.
func screenful(frame *Frame, trouble string, width, height int) []string {
	lines := Lines(frame, width, max(height-1, heading))
	if trouble != "" {
		lines[1] = cut(output.Text(trouble), width)
	}
	return append(lines, cut("q quits", width))
}

// stream prints frames one after the other.
func stream(ctx context.Context, source Source, o *Options) error {
	every := time.NewTicker(o.Every)
	defer every.Stop()
	for first := true; ; first = false {
		frame, err := gather(ctx, source, o, plainRows)
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

func printFrame(frame *Frame, o *Options, first bool) error {
	if o.Printer.JSON {
		for i := range frame.Locks {
			if err := o.Printer.Body(&frame.Locks[i]); err != nil {
				return err
			}
		}
		return nil
	}
	text := strings.Join(Lines(frame, 0, plainRows+heading), "\n") + "\n"
	if !first {
		text = "\n" + text
	}
	if _, err := o.Out.WriteString(text); err != nil {
		return fmt.Errorf("%w: %w", output.ErrWrite, err)
	}
	return nil
}

func gather(ctx context.Context, source Source, o *Options, rows int) (*Frame, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	return Gather(ctx, source, o.Prefix, rows, o.Now)
}
