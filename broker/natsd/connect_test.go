package natsd

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"
)

// deadlines counts how often the time limit of writes is set.
type deadlines struct {
	net.Conn
	set   int
	until time.Time
}

func (d *deadlines) SetWriteDeadline(t time.Time) error {
	d.set, d.until = d.set+1, t
	return nil
}

func (d *deadlines) SetDeadline(t time.Time) error { return d.SetWriteDeadline(t) }

// TestTheLimitOfWritesMovesSeldom: every write has at least half of the limit, also after one that nats.go has set for a time.
func TestTheLimitOfWritesMovesSeldom(t *testing.T) {
	under := &deadlines{}
	c := &limited{Conn: under}
	now := time.Now()
	write := func(after time.Duration, set int) {
		t.Helper()
		now = now.Add(after)
		if err := c.limit(now); err != nil {
			t.Fatal(err)
		}
		if left := under.until.Sub(now); left < writeLimit/2 || left > writeLimit {
			t.Errorf("a write has %v", left)
		}
		if under.set != set {
			t.Errorf("the limit was set %d times, not %d", under.set, set)
		}
	}
	write(0, 1)
	write(time.Second, 1)
	write(writeLimit/2-time.Second, 1)
	write(1, 2)
	write(time.Hour, 3)
	if err := c.SetDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	write(1, 5)
	if err := c.SetWriteDeadline(now); err != nil {
		t.Fatal(err)
	}
	write(1, 7)
}

// TestAWriteThatNobodyReadsEnds: the limit is the pipe's, and one that has run out does not stay.
func TestAWriteThatNobodyReadsEnds(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	c := &limited{Conn: ours}
	if err := c.limit(time.Now().Add(-2 * writeLimit)); err != nil { // long ago
		t.Fatal(err)
	}
	if _, err := ours.Write([]byte("a")); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("%v, want the end of the time", err)
	}
	got := make(chan byte)
	go func() {
		var b [1]byte
		_, _ = theirs.Read(b[:]) // what it got tells
		got <- b[0]
	}()
	if _, err := c.Write([]byte("b")); err != nil {
		t.Fatal(err)
	}
	if b := <-got; b != 'b' {
		t.Errorf("%q came", b)
	}
}
