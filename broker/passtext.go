package broker

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/opencluster/oclocks/broker/parking"
	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

// appendTo adds a request to a frame of a passage.
func (t *task) appendTo(b []byte) []byte {
	b = append(b, byte(t.trip.Hops))
	for _, text := range [...]string{t.req.Op.String(), t.in.Zone, t.in.User, t.in.Reply, t.in.Session.ID} {
		b = appendText(b, text)
	}
	if s := &t.in.Session; s.ID != "" {
		b = binary.AppendUvarint(b, s.Incarnation)
		b = binary.AppendUvarint(b, uint64(s.Lease)) //nolint:gosec // it is not negative
		b = binary.AppendUvarint(appendText(b, s.Conn.Server), s.Conn.CID)
	}
	// The body's length is not known before; it is at most what maxPassedSize allows, which fits.
	at := len(b)
	b = t.req.AppendJSON(append(b, 0, 0, 0, 0))
	binary.BigEndian.PutUint32(b[at:], uint32(len(b)-at-4)) //nolint:gosec // a few KiB
	return b
}

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// passReader reads a frame of a passage. After an error it gives nothing more.
type passReader struct {
	rest []byte
	err  error
}

// task reads a request. Its body is not decoded yet.
func (r *passReader) task() (t *task, zone string, body []byte) {
	hops, op := r.byte(), r.text()
	zone = r.text()
	t = newTask(taskOne, nil)
	t.in = bucket.Input{Kind: bucket.Request, User: r.text(), Reply: r.text()}
	if s := &t.in.Session; r.session(s) {
		s.Incarnation, s.Lease = r.number(), time.Duration(r.number()) //nolint:gosec // a node wrote it
		s.Conn = bucket.Conn{Server: r.text(), CID: r.number()}
	}
	if len(r.rest) < 4 {
		r.fail("no body")
		return t, "", nil
	}
	size := binary.BigEndian.Uint32(r.rest)
	r.rest = r.rest[4:]
	body = r.cut(uint64(size))
	var known bool
	if t.req.Op, known = subjects.ParseOp(op); !known || !t.req.Op.OnName() {
		r.fail("an operation that is not passed on")
	}
	if hops < 1 || hops > parking.MaxHops {
		r.fail("passed on too often")
	}
	t.trip.Hops = int(hops) + 1
	return t, zone, body
}

func (r *passReader) session(s *bucket.Session) bool {
	s.ID = r.text()
	return s.ID != ""
}

func (r *passReader) fail(why string) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: %s", errPassage, why)
	}
	r.rest = nil
}

func (r *passReader) byte() byte {
	b := r.cut(1)
	if len(b) == 0 {
		return 0
	}
	return b[0]
}

func (r *passReader) number() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.fail("a number")
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

func (r *passReader) bytes() []byte { return r.cut(r.number()) }
func (r *passReader) text() string  { return string(r.bytes()) }

func (r *passReader) cut(size uint64) []byte {
	if size > uint64(len(r.rest)) {
		r.fail("it is cut")
		return nil
	}
	b := r.rest[:size]
	r.rest = r.rest[size:]
	return b
}
