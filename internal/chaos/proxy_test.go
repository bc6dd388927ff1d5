package chaos

import (
	"bytes"
	"context"
	"io"
	"net"
	"testing"
	"time"
)

// through gives the two ends of a connection whose one direction a proxy carries.
func through(t *testing.T, tr *trouble, life time.Duration) (near, far net.Conn) {
	t.Helper()
	pair := func() (net.Conn, net.Conn) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		a, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		b, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close(); b.Close() })
		return a, b
	}
	near, in := pair()
	out, far := pair()
	go tr.carry(in, out, life)
	return near, far
}

func TestProxyDelays(t *testing.T) {
	tr := &trouble{late: 150 * time.Millisecond}
	near, far := through(t, tr, time.Hour)
	begin := time.Now()
	near.Write([]byte("abc"))
	got := make([]byte, 3)
	if _, err := io.ReadFull(far, got); err != nil || string(got) != "abc" || time.Since(begin) < 150*time.Millisecond || tr.hurt.Load() == 0 {
		t.Errorf("%q after %s: %v", got, time.Since(begin), err)
	}
}

func TestProxyDamages(t *testing.T) {
	text := bytes.Repeat([]byte("a"), 100)
	for _, garble := range []bool{false, true} {
		tr := &trouble{garble: garble, flip: !garble}
		near, far := through(t, tr, 0)
		near.Write(text)
		near.(*net.TCPConn).CloseWrite()
		got := make([]byte, len(text))
		n, _ := io.ReadFull(far, got)
		wrong := 0
		for i, b := range got[:n] {
			if b != 'a' {
				wrong++
			}
			if garble && b != 'a' && b != 0xff {
				t.Errorf("byte %d became %q, which may be an answer", i, b)
			}
		}
		// A reset may overtake what was written before it.
		if n > 0 && wrong != map[bool]int{false: 1, true: 50}[garble] || tr.hurt.Load() == 0 || !garble && n == 0 {
			t.Errorf("garble %t: %d of %d bytes are wrong", garble, wrong, n)
		}
	}
}
