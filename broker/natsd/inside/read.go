package inside

import (
	"bytes"
	"fmt"
	"net"
	"slices"
)

const (
	firstInput  = 32 << 10
	longestLine = 64 << 10 // an INFO is the longest
	keepNames   = 1024     // subjects that are remembered as strings
)

// input is what the reader has got.
type input struct {
	nc         net.Conn
	buf        []byte
	start, end int // of what is not taken yet
	names      map[string]string
	msg        Message // that is handled
}

// more reads on, so that there may be size bytes.
func (in *input) more(size int) error {
	switch {
	case in.start == in.end:
		in.start, in.end = 0, 0
		if size <= firstInput && len(in.buf) > firstInput {
			in.buf = make([]byte, firstInput)
		}
	case in.start > 0 && in.start+size > len(in.buf):
		in.end = copy(in.buf, in.buf[in.start:in.end])
		in.start = 0
	}
	if size > len(in.buf) {
		in.buf = slices.Grow(in.buf[:in.end], size)[:max(size, len(in.buf))]
	}
	n, err := in.nc.Read(in.buf[in.end:])
	in.end += n
	if n > 0 {
		return nil
	}
	return err
}

// line takes a line without its end.
func (in *input) line() ([]byte, error) {
	seen := 0
	for {
		if i := bytes.IndexByte(in.buf[in.start+seen:in.end], '\n'); i >= 0 {
			line := in.buf[in.start : in.start+seen+i]
			in.start += seen + i + 1
			return bytes.TrimSuffix(line, []byte{'\r'}), nil
		}
		if seen = in.end - in.start; seen > longestLine {
			return nil, fmt.Errorf("%w: a line of more than %d bytes", ErrProtocol, longestLine)
		}
		if err := in.more(seen + 1); err != nil {
			return nil, err
		}
	}
}

// body takes size bytes and the line end after them.
func (in *input) body(size int) ([]byte, error) {
	for in.end-in.start < size+2 {
		if err := in.more(size + 2); err != nil {
			return nil, err
		}
	}
	b := in.buf[in.start : in.start+size : in.start+size]
	in.start += size + 2
	return b, nil
}

// name is a string that often comes again.
func (in *input) name(b []byte) string {
	if s, ok := in.names[string(b)]; ok {
		return s
	}
	if in.names == nil || len(in.names) >= keepNames {
		in.names = make(map[string]string)
	}
	s := string(b)
	in.names[s] = s
	return s
}

// read is the reader.
func (c *Conn) read(in *input) {
	defer close(c.done)
	for {
		c.lost(in.nc, c.serve(in))
		var ok bool
		if in, ok = c.again(); !ok {
			return
		}
	}
}

// serve handles what comes until the connection ends.
func (c *Conn) serve(in *input) error {
	var fields [6][]byte
	for {
		line, err := in.line()
		if err != nil {
			return err
		}
		parts := split(line, fields[:0])
		if len(parts) == 0 {
			return fmt.Errorf("%w: an empty line", ErrProtocol)
		}
		switch string(parts[0]) {
		case "MSG":
			err = c.message(in, parts[1:], false)
		case "HMSG":
			err = c.message(in, parts[1:], true)
		case "PING":
			c.mu.Lock()
			c.buf = append(c.buf, "PONG\r\n"...)
			c.wake()
			c.mu.Unlock()
		case "PONG":
			c.ponged()
		case "-ERR":
			if c.opts.Report != nil {
				c.opts.Report(fmt.Errorf("%w: %s", ErrServer, line[len("-ERR"):]))
			}
		case "INFO", "+OK":
		default:
			err = fmt.Errorf("%w: %.40q", ErrProtocol, line)
		}
		if err != nil {
			return err
		}
	}
}

// split gives the words of a line, the last with everything after it if there are too many.
func split(line []byte, words [][]byte) [][]byte {
	for len(line) > 0 {
		i := bytes.IndexByte(line, ' ')
		switch {
		case i == 0:
			line = line[1:]
			continue
		case i < 0 || len(words) == cap(words)-1:
			return append(words, line)
		}
		words, line = append(words, line[:i]), line[i+1:]
	}
	return words
}

// message handles one: subject, sid, reply if there is one, length of the header if there is one, length of all.
func (c *Conn) message(in *input, parts [][]byte, headed bool) error {
	sizes := 1
	if headed {
		sizes = 2
	}
	words := len(parts) - sizes
	if words != 2 && words != 3 {
		return fmt.Errorf("%w: a message with %d words", ErrProtocol, len(parts))
	}
	sid, ok := number(parts[1])
	size, ok2 := number(parts[len(parts)-1])
	head := uint64(0)
	ok3 := true
	if headed {
		head, ok3 = number(parts[words])
	}
	if !ok || !ok2 || !ok3 || head > size || size > uint64(c.limit) {
		return fmt.Errorf("%w: a message of %s bytes", ErrProtocol, parts[len(parts)-1])
	}
	m := &in.msg
	*m = Message{Subject: in.name(parts[0])} // before the body is read: the line is in the same memory
	if words == 3 {
		m.Reply = string(parts[2])
	}
	body, err := in.body(int(size))
	if err != nil {
		return err
	}
	if headed {
		m.Header = body[:head:head]
	}
	m.Data = body[head:]
	c.subsMu.RLock()
	s := c.subs[sid]
	c.subsMu.RUnlock()
	if s != nil {
		s.handle(m)
	}
	return nil
}

// number reads a decimal number.
func number(b []byte) (uint64, bool) {
	if len(b) == 0 || len(b) > 18 {
		return 0, false
	}
	n := uint64(0)
	for _, d := range b {
		if d < '0' || d > '9' {
			return 0, false
		}
		n = 10*n + uint64(d-'0')
	}
	return n, true
}

// ponged tells the first who waits for a PONG.
func (c *Conn) ponged() {
	c.mu.Lock()
	if len(c.pongs) == 0 {
		c.mu.Unlock()
		return
	}
	done := c.pongs[0]
	c.pongs = c.pongs[1:]
	c.mu.Unlock()
	done(nil)
}
