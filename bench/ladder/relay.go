package ladder

import (
	"encoding/binary"
	"sync"

	"github.com/nats-io/nats.go"
)

// What a frame of a relay has after its step: cascade or confirmation, the number of the request, its body.
const (
	cascade      = 1
	confirmation = 2
	relayHead    = 9
)

// relay passes each request on by itself, and does all of it in the goroutine that brings it.
type relay struct {
	kind byte
	next uint64
	way  way

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]*nats.Msg
}

func newRelay(kind byte, next uint64, w way) *relay {
	return &relay{kind: kind, next: next, way: w, waiting: make(map[uint64]*nats.Msg)}
}

func (r *relay) ask(msg *nats.Msg) {
	r.mu.Lock()
	r.last++
	id := r.last
	r.waiting[id] = msg
	r.mu.Unlock()
	frame := binary.BigEndian.AppendUint64([]byte{r.kind, cascade}, id)
	r.way.Send(r.next, append(frame, msg.Data...)) // without a way nobody answers
}

func (r *relay) take(from uint64, frame []byte) {
	if len(frame) < relayHead {
		return
	}
	if frame[0] == cascade {
		r.way.Send(from, append([]byte{r.kind, confirmation}, frame[1:relayHead]...))
		return
	}
	id := binary.BigEndian.Uint64(frame[1:])
	r.mu.Lock()
	msg := r.waiting[id]
	delete(r.waiting, id)
	r.mu.Unlock()
	if msg != nil {
		_ = msg.Respond(msg.Data) // what is not answered fails at the client
	}
}
