package output

import (
	"bytes"
	"fmt"
	"io"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// Printer prints to one writer. It is for one goroutine.
type Printer struct {
	Out   io.Writer
	JSON  bool             // one JSON object a line
	Quiet bool             // only what a script would read; nothing where there is no such thing
	Now   func() time.Time // for ages

	list table // the list under way, see Record
	buf  bytes.Buffer
}

// Body prints an answer. An answer of a type that has no text is printed as JSON.
func (p *Printer) Body(body subjects.Body) error {
	if p.JSON {
		return p.jsonLine(body)
	}
	p.buf.Reset()
	switch b := body.(type) {
	case *subjects.Grant:
		p.grant(b)
	case *subjects.Queued:
		p.queued(b)
	case *subjects.Released:
		p.released(b)
	case *subjects.Cancelled:
		p.cancelled(b)
	case *subjects.Forced:
		p.forced(b)
	case *subjects.Checked:
		p.checked(b)
	case *subjects.Record:
		p.record(b)
	case *subjects.Opened:
		p.opened(b)
	case *subjects.SessionClosed:
		p.closed(b)
	case *subjects.Info:
		p.info(b)
	case *subjects.Servers:
		p.servers(b)
	case *Ping:
		p.ping(b)
	case *subjects.LockEvent:
		p.lockEvent(b)
	case *subjects.ServerEvent:
		p.serverEvent(b)
	case *subjects.SessionEvent:
		p.sessionEvent(b)
	default:
		return p.jsonLine(body)
	}
	return p.flush()
}

func (p *Printer) jsonLine(body subjects.Body) error {
	p.buf.Reset()
	p.buf.Write(append(body.AppendJSON(p.buf.AvailableBuffer()), '\n'))
	return p.flush()
}

// flush writes what was gathered, in one call, so that lines of several processes do not mix.
func (p *Printer) flush() error {
	if p.buf.Len() == 0 {
		return nil
	}
	if _, err := p.Out.Write(p.buf.Bytes()); err != nil {
		return fmt.Errorf("%w: %w", ErrWrite, err)
	}
	return nil
}

// printf gathers text.
func (p *Printer) printf(format string, args ...any) { fmt.Fprintf(&p.buf, format, args...) }

// age is how long ago a time of the wire was.
func (p *Printer) age(ms int64) time.Duration {
	return max(0, p.Now().Sub(time.UnixMilli(ms)))
}
