package core

import (
	"encoding/binary"
	"fmt"
)

const envelopeFormat = 1

// envelope is around every command in the log, and in the context of every change of membership.
type envelope struct {
	Raft uint64 // who proposed it
	Life uint64
	ID   uint64 // told apart from others of the same Raft and Life
	Term uint64 // not 0: counts only as an entry of this term
	Data []byte
}

func (e *envelope) encode() []byte {
	b := append(make([]byte, 0, 32+len(e.Data)), envelopeFormat)
	b = binary.LittleEndian.AppendUint64(b, e.Raft)
	b = binary.AppendUvarint(b, e.Life)
	b = binary.AppendUvarint(b, e.ID)
	b = binary.AppendUvarint(b, e.Term)
	return append(b, e.Data...)
}

// openEnvelope reads what encode wrote; Data is a part of buf.
func openEnvelope(buf []byte) (envelope, error) {
	if len(buf) == 0 || buf[0] != envelopeFormat {
		return envelope{}, fmt.Errorf("%w: an entry of an unknown format", ErrFrame)
	}
	r := reader{buf: buf[1:]}
	e := envelope{Raft: r.fixed(), Life: r.num(), ID: r.num(), Term: r.num(), Data: r.rest(MaxCommand)}
	if r.err == nil && (e.Raft == 0 || e.Life == 0 || e.ID == 0) {
		r.fail("an entry of nobody")
	}
	if r.err != nil {
		return envelope{}, fmt.Errorf("%w: an entry: %w", ErrFrame, r.err)
	}
	return e, nil
}
