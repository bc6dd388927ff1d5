package inside

import (
	"context"
	"strconv"
)

const (
	directBytes = 8 << 10   // what is longer is written by the writer, so that whoever flushes goes on meanwhile
	keepBytes   = 256 << 10 // a larger buffer is not kept
)

// Put publishes a message, with Flush or Kick. header is a whole block, or nil. Errors: ErrClosed, ErrAway, ErrFull, ErrSubject,
// ErrTooLarge; nothing is published then.
func (c *Conn) Put(subject, reply string, header, body []byte) error {
	if c == nil { // a connection that was never opened
		return ErrClosed
	}
	if !valid(subject) || reply != "" && !valid(reply) {
		return ErrSubject
	}
	size := len(header) + len(body)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return ErrClosed
	case c.nc == nil:
		return ErrAway
	case size > c.limit:
		return ErrTooLarge
	case len(c.buf)+size > c.opts.Pending:
		return ErrFull
	}
	b := c.buf
	if header == nil {
		b = append(b, "PUB "...)
	} else {
		b = append(b, "HPUB "...)
	}
	b = append(append(b, subject...), ' ')
	if reply != "" {
		b = append(append(b, reply...), ' ')
	}
	if header != nil {
		b = append(strconv.AppendInt(b, int64(len(header)), 10), ' ')
	}
	b = append(strconv.AppendInt(b, int64(size), 10), "\r\n"...)
	b = append(append(append(b, header...), body...), "\r\n"...)
	c.buf = b
	return nil
}

// Header makes the block of a header of names, each followed by its value.
func Header(pairs ...string) []byte {
	b := []byte("NATS/1.0\r\n")
	for i := 0; i+1 < len(pairs); i += 2 {
		b = append(append(b, pairs[i]...), ": "...)
		for _, char := range []byte(pairs[i+1]) {
			if char == '\r' || char == '\n' {
				char = ' ' // it would end the line
			}
			b = append(b, char)
		}
		b = append(b, "\r\n"...)
	}
	return append(b, "\r\n"...)
}

// valid says whether a subject can be told without being taken for something else.
func valid(subject string) bool {
	for i := range len(subject) {
		if subject[i] <= ' ' || subject[i] == 0x7f {
			return false
		}
	}
	return subject != ""
}

// Flush has written what was published: by this goroutine if it is short and nobody else is writing.
func (c *Conn) Flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.buf) > directBytes {
		c.wake()
		return
	}
	if c.writing || len(c.buf) == 0 || c.nc == nil {
		return // who is writing looks once more
	}
	c.writeOut()
	if len(c.buf) > 0 {
		c.wake() // more has come meanwhile: not this goroutine's
	}
}

// Kick has written what was published by the writer.
func (c *Conn) Kick() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.buf) > 0 {
		c.wake()
	}
}

// wake wakes the writer. The caller holds mu.
func (c *Conn) wake() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// write is the writer.
func (c *Conn) write() {
	defer close(c.written)
	for {
		select {
		case <-c.kick:
		case <-c.quit:
			return
		}
		c.mu.Lock()
		for !c.writing && len(c.buf) > 0 && c.nc != nil {
			c.writeOut()
		}
		c.mu.Unlock()
	}
}

// writeOut writes what is there. The caller holds mu, which is released meanwhile; nobody else is writing. Who comes meanwhile
// leaves what he has to this one's end: so it wakes the writer if there is more.
func (c *Conn) writeOut() {
	out, nc := c.buf, c.nc
	c.buf, c.spare, c.writing = c.spare[:0], nil, true
	c.mu.Unlock()
	_, err := nc.Write(out)
	if err != nil {
		nc.Close() // the reader notices and connects again
	}
	c.mu.Lock()
	c.writing = false
	if cap(out) <= keepBytes {
		c.spare = out[:0]
	}
}

// Subscribe listens to a subject, in a queue group if queue is not empty. It is told to the server with Flush, Kick or Sync.
func (c *Conn) Subscribe(subject, queue string, handle func(m *Message)) (*Subscription, error) {
	if !valid(subject) || queue != "" && !valid(queue) {
		return nil, ErrSubject
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	c.sid++
	s := &Subscription{Subject: subject, Queue: queue, c: c, sid: c.sid, handle: handle}
	c.subsMu.Lock()
	c.subs[s.sid] = s
	c.subsMu.Unlock()
	if c.nc != nil { // else it is told when the connection is back
		c.buf = s.appendSub(c.buf)
		c.wake()
	}
	return s, nil
}

func (s *Subscription) appendSub(b []byte) []byte {
	b = append(append(append(b, "SUB "...), s.Subject...), ' ')
	if s.Queue != "" {
		b = append(append(b, s.Queue...), ' ')
	}
	return append(strconv.AppendUint(b, s.sid, 10), "\r\n"...)
}

// Unsubscribe ends a subscription. What the server has sent before it is told of this is still handled.
func (s *Subscription) Unsubscribe() error {
	c := s.c
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return ErrClosed
	case c.nc == nil:
		s.forget()
		return nil
	}
	c.buf = append(strconv.AppendUint(append(c.buf, "UNSUB "...), s.sid, 10), "\r\n"...)
	c.ping(func(error) { s.forget() })
	c.wake()
	return nil
}

func (s *Subscription) forget() {
	s.c.subsMu.Lock()
	defer s.c.subsMu.Unlock()
	delete(s.c.subs, s.sid)
}

// ping has done called when the server has taken everything that was published before, and what it had sent before is handled, or
// with an error when the connection is lost. The caller holds mu; done must not need it.
func (c *Conn) ping(done func(err error)) {
	c.buf = append(c.buf, "PING\r\n"...)
	c.pongs = append(c.pongs, done)
}

// Sync returns when the server has taken everything that was published and subscribed before, and what it had sent before that is
// handled. ErrClosed, ErrAway, or the error of ctx if it cannot know. It must not be called by a handler.
func (c *Conn) Sync(ctx context.Context) error {
	told := make(chan error, 1)
	c.mu.Lock()
	switch {
	case c.closed:
		c.mu.Unlock()
		return ErrClosed
	case c.nc == nil:
		c.mu.Unlock()
		return ErrAway
	}
	c.ping(func(err error) { told <- err })
	c.wake()
	c.mu.Unlock()
	select {
	case err := <-told:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
