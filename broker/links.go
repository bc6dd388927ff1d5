package broker

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/internal/fault"
)

// frameBytes is how large a frame becomes at the most; a longer message is cut into parts.
const frameBytes = 512 << 10

// The first byte of a frame.
const (
	frameBatch = 1 // from, then messages, each with its length before it
	framePart  = 2 // from, number of the message, its length, offset of the part, bytes
)

// links carries the messages of the chains to the other nodes: what a batch of a shard has for one node is one NATS
// message, whatever buckets it is about. The chain repeats what is lost.
type links struct {
	d    *Daemon
	conn *nats.Conn
	self uint64

	mu   sync.Mutex
	out  map[uint64][]byte // frames in the making, by node
	text []byte
	cut  uint64 // messages that were sent in parts

	fault corruption

	parts map[uint64]*assembly // by sender; only the connection's reader touches it
}

// assembly is a message of which parts have come.
type assembly struct {
	number uint64
	bytes  []byte
	have   int
}

func chainSubject(node uint64) string { return "node." + strconv.FormatUint(node, 10) + ".chain" }

// openLinks begins to listen for what other nodes send to this one.
func (d *Daemon) openLinks(conn *nats.Conn, self uint64) (*links, error) {
	l := &links{d: d, conn: conn, self: self, out: make(map[uint64][]byte), parts: make(map[uint64]*assembly)}
	sub, err := conn.Subscribe(chainSubject(self), l.receive)
	if err == nil {
		err = sub.SetPendingLimits(-1, -1) // the windows of the chains bound what is on its way
	}
	if err == nil {
		_, err = conn.Subscribe(forwardSubject(self), l.forwarded)
	}
	if err == nil {
		_, err = conn.Subscribe(gatherSubject(self), l.asked)
	}
	if err == nil {
		err = l.openEvents()
	}
	if err != nil {
		return nil, fmt.Errorf("listen for the other nodes: %w", err)
	}
	return l, nil
}

// send publishes messages, those for one node together.
func (l *links) send(messages []chain.Message) {
	if len(messages) == 0 {
		return
	}
	if fault.File() != "" {
		l.goWrong(messages)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range messages {
		m := &messages[i]
		node := m.To.Node
		l.text = m.Encode(l.text[:0])
		if len(l.text) > frameBytes {
			l.flush(node)
			l.sendParts(node, l.text)
			continue
		}
		frame := l.out[node]
		if len(frame)+len(l.text) > frameBytes {
			l.flush(node)
			frame = l.out[node]
		}
		if len(frame) == 0 {
			frame = binary.AppendUvarint(append(frame, frameBatch), l.self)
		}
		frame = binary.AppendUvarint(frame, uint64(len(l.text)))
		l.out[node] = append(frame, l.text...)
	}
	for node := range l.out { // order: each goes its own way
		l.flush(node)
	}
}

func (l *links) flush(node uint64) {
	if frame := l.out[node]; len(frame) > 0 {
		l.publish(node, frame)
		l.out[node] = frame[:0]
	}
}

// sendParts sends a long message in parts, which arrive in order or not at all.
func (l *links) sendParts(node uint64, text []byte) {
	l.cut++
	offset := 0
	for part := range slices.Chunk(text, frameBytes) {
		frame := binary.AppendUvarint([]byte{framePart}, l.self)
		frame = binary.AppendUvarint(frame, l.cut)
		frame = binary.AppendUvarint(frame, uint64(len(text)))
		frame = binary.AppendUvarint(frame, uint64(offset))
		l.publish(node, append(frame, part...))
		offset += len(part)
	}
}

func (l *links) publish(node uint64, frame []byte) {
	if err := l.conn.Publish(chainSubject(node), frame); err != nil {
		l.d.metrics.unsent.Inc()
		l.d.log.Debug("a message to another node could not be sent", "node", node, "error", err)
	}
}

// receive takes a frame from another node and gives each shard the messages for its buckets.
func (l *links) receive(msg *nats.Msg) {
	from, messages, err := l.decode(msg.Data)
	if err != nil {
		l.d.metrics.misdirected.Inc()
		l.d.log.Warn("a frame from another node is damaged", "from", from, "error", err)
		return
	}
	for index, s := range l.d.shards {
		var own []chain.Message
		for i := range messages {
			if number := messages[i].Bucket; int(number) < l.d.buckets() && int(number)%len(l.d.shards) == index {
				own = append(own, messages[i])
			}
		}
		if len(own) > 0 {
			t := newTask(taskChain, nil)
			t.from, t.messages = from, own
			s.queue.put(t)
		}
	}
}

// decode reads a frame. What it gives are parts of it.
func (l *links) decode(frame []byte) (from uint64, messages []chain.Message, err error) {
	if len(frame) == 0 {
		return 0, nil, chain.ErrMessage
	}
	kind, rest := frame[0], frame[1:]
	if from, rest, err = number(rest); err != nil {
		return 0, nil, err
	}
	switch kind {
	case frameBatch:
		for len(rest) > 0 {
			var size uint64
			if size, rest, err = number(rest); err != nil || size > uint64(len(rest)) {
				return from, nil, chain.ErrMessage
			}
			m, err := chain.Decode(rest[:size:size])
			if err != nil {
				return from, nil, err
			}
			messages, rest = append(messages, m), rest[size:]
		}
		return from, messages, nil
	case framePart:
		whole, err := l.assemble(from, rest)
		if err != nil || whole == nil {
			return from, nil, err
		}
		m, err := chain.Decode(whole)
		return from, []chain.Message{m}, err
	}
	return from, nil, fmt.Errorf("%w: a frame of kind %d", chain.ErrMessage, kind)
}

// assemble puts parts together; a part that does not follow the last one drops the message, which the chain sends again.
func (l *links) assemble(from uint64, rest []byte) (whole []byte, err error) {
	var fields [3]uint64 // message, length, offset
	for i := range fields {
		if fields[i], rest, err = number(rest); err != nil {
			return nil, err
		}
	}
	cut, size, offset := fields[0], fields[1], fields[2]
	if size > maxMessage || offset+uint64(len(rest)) > size {
		return nil, fmt.Errorf("%w: a part of %d bytes", chain.ErrMessage, size)
	}
	a := l.parts[from]
	if offset == 0 {
		a = &assembly{number: cut, bytes: make([]byte, size)}
		l.parts[from] = a
	}
	if a == nil || a.number != cut || uint64(len(a.bytes)) != size || uint64(a.have) != offset {
		delete(l.parts, from)
		return nil, nil // an earlier part was lost
	}
	a.have += copy(a.bytes[offset:], rest)
	if a.have < len(a.bytes) {
		return nil, nil // more is to come
	}
	delete(l.parts, from)
	return a.bytes, nil
}

// maxMessage bounds what is assembled: a change of the largest size, and what is around it.
const maxMessage = 65 << 20

func number(b []byte) (uint64, []byte, error) {
	v, n := binary.Uvarint(b)
	if n <= 0 {
		return 0, nil, chain.ErrMessage
	}
	return v, b[n:], nil
}
