package inside

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"
)

const greeting = `INFO {"nonce":"n","max_payload":100,"headers":true}` + "\r\n"

// scripted is a server that says what the test tells it to. Each connection gets the same.
func scripted(says string, then func(nc net.Conn, in *bufio.Reader)) func() (net.Conn, error) {
	return func() (net.Conn, error) {
		ours, theirs := net.Pipe()
		go func() {
			in := bufio.NewReader(theirs)
			if _, err := fmt.Fprint(theirs, says); err != nil {
				return
			}
			then(theirs, in)
		}()
		return ours, nil
	}
}

// expect reads a line.
func expect(in *bufio.Reader, prefix string) error {
	line, err := in.ReadString('\n')
	if err == nil && !strings.HasPrefix(line, prefix) {
		err = fmt.Errorf("%q comes, not %s", line, prefix)
	}
	return err
}

func drain(in *bufio.Reader) {
	for {
		if _, err := in.ReadString('\n'); err != nil {
			return
		}
	}
}

// A server that refuses or is none gives an error.
func TestRefusedByTheServer(t *testing.T) {
	for _, test := range []struct {
		says, answers string
		want          error
	}{
		{greeting, "-ERR 'Authorization Violation'\r\n", ErrServer},
		{greeting, "HTTP/1.1 400\r\n", ErrProtocol},
		{"SSH-2.0\r\n", "", ErrProtocol},
		{"INFO {}\r\n", "", ErrProtocol},
		{"INFO nonsense\r\n", "", ErrProtocol},
		{strings.Repeat("x", longestLine+2), "", ErrProtocol},
	} {
		_, err := Open(Options{Sign: unsigned, Dial: scripted(test.says, func(nc net.Conn, in *bufio.Reader) {
			defer nc.Close()
			if expect(in, "CONNECT {") == nil && expect(in, "PING") == nil {
				fmt.Fprint(nc, test.answers)
			}
		})})
		if !errors.Is(err, test.want) {
			t.Errorf("%.30q, %q: %v, want %v", test.says, test.answers, err, test.want)
		}
	}
	broken := errors.New("no key")
	if _, err := Open(Options{Sign: func([]byte) ([]byte, error) { return nil, broken }, Dial: scripted(greeting, func(nc net.Conn, in *bufio.Reader) {
		drain(in)
	})}); !errors.Is(err, broken) {
		t.Errorf("without a signature: %v", err)
	}
}

// serving is a server that says something after the greeting, bytewise if slow, and goes on reading.
func serving(says string, slow bool) func() (net.Conn, error) {
	return scripted(greeting, func(nc net.Conn, in *bufio.Reader) {
		if expect(in, "CONNECT {") != nil || expect(in, "PING") != nil {
			return
		}
		go drain(in)
		says := "INFO {}\r\nPONG\r\n" + says
		for len(says) > 0 {
			n := len(says)
			if slow {
				n = 1
			}
			if _, err := nc.Write([]byte(says[:n])); err != nil {
				return
			}
			says = says[n:]
		}
	})
}

// What comes is understood in whatever pieces it comes.
func TestPieces(t *testing.T) {
	text := "PING\r\n+OK\r\nMSG a 1 5\r\nhello\r\n-ERR 'Something'\r\nMSG  a  1  in.box  0\r\n\r\nHMSG a 1 in.box 12 14\r\nNATS/1.0\r\n\r\nhi\r\nMSG a 7 2\r\nno\r\n" +
		"INFO {\"x\": \"a b c d e f g h\"}\r\nHMSG b.c 1 12 12\r\nNATS/1.0\r\n\r\n\r\nMSG last 1 1\r\n.\r\n"
	for _, slow := range []bool{false, true} {
		g, reports := newGot(), make(chan error, 100)
		hold := make(chan struct{})
		opts := Options{Name: "test", Sign: unsigned, Dial: serving(text, slow), Report: func(err error) { <-hold; reports <- err }}
		c := &Conn{opts: opts, quit: make(chan struct{}), done: make(chan struct{}), kick: make(chan struct{}, 1), written: make(chan struct{}),
			subs: map[uint64]*Subscription{1: {sid: 1, handle: g.take}}}
		c.opts.Pending = defaultPending
		in, err := c.connect()
		if err != nil {
			t.Fatal(err)
		}
		close(hold)
		go c.read(in)
		go c.write()
		for _, want := range []string{"a  [] hello", "a in.box [] ", "a in.box [NATS/1.0\r\n\r\n] hi", "b.c  [NATS/1.0\r\n\r\n] ", "last  [] ."} {
			m := g.next(t)
			if is := fmt.Sprintf("%s %s [%s] %s", m.Subject, m.Reply, m.Header, m.Data); is != want {
				t.Errorf("got %q, want %q", is, want)
			}
		}
		if err := <-reports; !errors.Is(err, ErrServer) || !strings.Contains(err.Error(), "Something") {
			t.Errorf("reported: %v", err)
		}
		c.Close()
	}
}

// What is not the protocol ends the connection, which is made anew.
func TestNonsense(t *testing.T) {
	for _, says := range []string{
		"NONSENSE\r\n", "\r\n", "MSG\r\n", "MSG a 1\r\n", "MSG a x 1\r\n", "MSG a 1 -1\r\n", "MSG a 1 101\r\n", "MSG a 1 99999999999999999999\r\n",
		"HMSG a 1 5\r\n", "HMSG a 1 6 5\r\n", "MSG a b c d e f\r\n", "HMSG a 1 r 1 2 3\r\n", strings.Repeat("y", longestLine+2),
	} {
		lost := make(chan error, 100)
		c := open(t, Options{Dial: serving(says, false), Lost: func(err error) {
			select {
			case lost <- err:
			default:
			}
		}})
		for range 2 {
			select {
			case err := <-lost:
				if !errors.Is(err, ErrProtocol) {
					t.Errorf("%.30q: %v", says, err)
				}
			case <-time.After(patience):
				t.Fatalf("%.30q is taken", says)
			}
		}
		c.Close()
	}
}

// A server that does not read stops nobody: what does not fit is refused.
func TestAServerThatDoesNotRead(t *testing.T) {
	c := open(t, Options{Pending: 1000, Dial: scripted(greeting, func(nc net.Conn, in *bufio.Reader) {
		if expect(in, "CONNECT {") == nil && expect(in, "PING") == nil {
			fmt.Fprint(nc, "PONG\r\n")
		}
	})})
	var err error
	for i := 0; err == nil; i++ {
		if i > 100 {
			t.Fatal("everything is taken")
		}
		err = c.Put("a", "", nil, make([]byte, 100))
		c.Kick()
	}
	if !errors.Is(err, ErrFull) {
		t.Errorf("got %v", err)
	}
}
