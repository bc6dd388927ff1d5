package ptytest

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Stage is a process that leads a session on a terminal of its own. What goes wrong fails the test.
type Stage struct {
	t     testing.TB
	Cmd   *exec.Cmd
	pty   *os.File
	shown *bufio.Reader
}

// Start starts cmd with a terminal as its standard input, output and error, 80 by 24. The process and the terminal are
// taken away when the test ends, or after patience. Where there are no pseudo terminals the test is skipped.
func Start(t testing.TB, cmd *exec.Cmd, patience time.Duration) *Stage {
	t.Helper()
	pty, tty := open(t)
	defer tty.Close()
	s := &Stage{t: t, Cmd: cmd, pty: pty, shown: bufio.NewReader(pty)}
	s.Resize(80, 24)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = tty, tty, tty
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end := func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = pty.Close()        // twice is no harm
	}
	guard := time.AfterFunc(patience, end)
	t.Cleanup(func() {
		guard.Stop()
		end()
		_ = cmd.Wait() // the test may have waited for it
	})
	return s
}

func open(t testing.TB) (pty, tty *os.File) {
	t.Helper()
	pty, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo terminals here: %v", err)
	}
	control(t, pty, func(fd int) error { return unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0) })
	number := 0
	control(t, pty, func(fd int) (err error) {
		number, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		return err
	})
	tty, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return pty, tty
}

// control uses the descriptor without File.Fd, after which Close would not end a Read.
func control(t testing.TB, f *os.File, do func(fd int) error) {
	t.Helper()
	conn, err := f.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	if err := conn.Control(func(fd uintptr) { failed = do(int(fd)) }); err != nil {
		t.Fatal(err)
	}
	if failed != nil {
		t.Fatal(failed)
	}
}

// Type types keys.
func (s *Stage) Type(keys string) {
	s.t.Helper()
	if _, err := io.WriteString(s.pty, keys); err != nil {
		s.t.Fatal(err)
	}
}

// Shows waits until text has been shown since the last Shows.
func (s *Stage) Shows(text string) {
	s.t.Helper()
	var seen strings.Builder
	for !strings.Contains(seen.String(), text) {
		b, err := s.shown.ReadByte()
		if err != nil {
			last := seen.String()
			s.t.Fatalf("the terminal does not show %q: %v; at last it showed %q", text, err, last[max(0, len(last)-500):])
		}
		seen.WriteByte(b)
	}
}

// Resize changes the size of the terminal, which the process hears of.
func (s *Stage) Resize(width, height uint16) {
	s.t.Helper()
	control(s.t, s.pty, func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: height, Col: width})
	})
}

// Modes are those of the terminal now.
func (s *Stage) Modes() (modes unix.Termios) {
	s.t.Helper()
	control(s.t, s.pty, func(fd int) error {
		m, err := unix.IoctlGetTermios(fd, unix.TCGETS)
		if err == nil {
			modes = *m
		}
		return err
	})
	return modes
}
