package live

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"golang.org/x/term"

	"github.com/opencluster/oclocks/internal/cli/output"
)

// What a terminal is told. All of it is in every terminal emulator since the VT100 or xterm.
const (
	enterScreen = "\x1b[?1049h\x1b[?25l" // the alternate screen, so that what was there comes back; no cursor
	leaveScreen = "\x1b[?25h\x1b[?1049l"
	home        = "\x1b[H"
	clearRest   = "\x1b[K" // of the line
	clearBelow  = "\x1b[J"
)

// screen is a terminal that is drawn upon.
type screen struct {
	out     *os.File
	tty     *os.File // for keys; nil if there is no terminal to read from
	modes   *term.State
	keys    chan byte
	resized chan os.Signal
	done    chan struct{} // closed when the reader of keys has ended; nil if there is none
}

// openScreen takes the terminal over, until close.
func openScreen(out *os.File) (*screen, error) {
	s := &screen{out: out, keys: make(chan byte, 16), resized: make(chan os.Signal, 1)}
	signal.Notify(s.resized, syscall.SIGWINCH)
	// Opened anew, so that Close ends a Read that is under way.
	if tty, err := os.OpenFile("/dev/tty", os.O_RDONLY|syscall.O_NONBLOCK, 0); err == nil {
		s.tty, s.done = tty, make(chan struct{})
		s.raw(func(fd int) {
			if modes, err := term.MakeRaw(fd); err == nil {
				s.modes = modes
			}
		})
		go s.read()
	}
	if _, err := io.WriteString(out, enterScreen); err != nil {
		s.close()
		return nil, fmt.Errorf("%w: %w", output.ErrWrite, err)
	}
	return s, nil
}

// raw does something with the descriptor of the keyboard. It does not use File.Fd, which would make reads uninterruptible.
func (s *screen) raw(do func(fd int)) {
	conn, err := s.tty.SyscallConn()
	if err != nil {
		return
	}
	// Control fails only for a closed file.
	_ = conn.Control(func(fd uintptr) { do(int(fd)) })
}

func (s *screen) read() {
	defer close(s.done)
	var b [1]byte
	for {
		if n, err := s.tty.Read(b[:]); err != nil || n == 0 {
			return
		}
		select {
		case s.keys <- b[0]:
		default: // nobody types faster than this is read, but for what was pasted
		}
	}
}

// draw puts lines in place of those that are there.
func (s *screen) draw(lines []string) error {
	var b strings.Builder
	b.WriteString(home)
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(line + clearRest)
	}
	b.WriteString(clearBelow)
	if _, err := io.WriteString(s.out, b.String()); err != nil {
		return fmt.Errorf("%w: %w", output.ErrWrite, err)
	}
	return nil
}

// size is the terminal's; 80 by 24 where that cannot be told.
func (s *screen) size() (width, height int) {
	width, height, err := term.GetSize(int(s.out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// close gives the terminal back as it was.
func (s *screen) close() {
	signal.Stop(s.resized)
	_, _ = io.WriteString(s.out, leaveScreen) // a terminal that is gone needs nothing
	if s.tty == nil {
		return
	}
	if s.modes != nil {
		s.raw(func(fd int) { _ = term.Restore(fd, s.modes) }) // the same
	}
	_ = s.tty.Close() // it was only read
	<-s.done
}
