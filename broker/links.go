package broker

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

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

// laterTime is how long messages that no answer waits for stay for others to go with them.
const laterTime = 2 * time.Millisecond

// links carries the messages of the chains to the other nodes: what a batch of a shard has for one node is one NATS
// message, whatever buckets it is about. The chain repeats what is lost.
type links struct {
	d    *Daemon
	conn *nats.Conn
	self uint64

	mu    sync.Mutex
	boxes []*outbox   // one for each other node
	later *time.Timer // sends what stays
	armed bool        // it will
	text  []byte
	cut   uint64 // messages that were sent in parts

	fault corruption

	// Only the connection's reader touches these.
	parts map[uint64]*assembly // by sender
	tasks []*task              // of the frame that is read, by shard
}

// outbox is the frame in the making for one node.
type outbox struct {
	node    uint64
	subject string
	frame   []byte
	now     bool // an answer waits for something in it
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
	l := &links{d: d, conn: conn, self: self, parts: make(map[uint64]*assembly), tasks: make([]*task, len(d.shards))}
	l.later = time.AfterFunc(time.Hour, l.sendRest)
	l.later.Stop()
	sub, err := conn.Subscribe(chainSubject(self), l.receive)
	if err == nil {
		err = sub.SetPendingLimits(-1, -1) // the windows of the chains bound what is on its way
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

// send publishes messages, those for one node together. Those of later go when others go to the same node, or before long.
func (l *links) send(now, later []chain.Message) {
	if len(now)+len(later) == 0 {
		return
	}
	if fault.File() != "" {
		l.goWrong(now)
		l.goWrong(later)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range now {
		l.put(&now[i]).now = true
	}
	stays := false
	for i := range later {
		stays = !l.put(&later[i]).now || stays
	}
	for _, box := range l.boxes {
		if box.now {
			l.flush(box)
		}
	}
	if stays && !l.armed {
		l.armed = true
		l.later.Reset(laterTime)
	}
}

// sendRest sends what has stayed long enough.
func (l *links) sendRest() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.armed = false
	for _, box := range l.boxes {
		l.flush(box)
	}
}

// put adds a message to the frame for its node, after what is there already.
func (l *links) put(m *chain.Message) *outbox {
	box := l.box(m.To.Node)
	l.text = m.Encode(l.text[:0])
	if len(box.frame)+len(l.text) > frameBytes {
		l.flush(box)
	}
	if len(l.text) > frameBytes {
		l.sendParts(box, l.text)
		return box
	}
	if len(box.frame) == 0 {
		box.frame = binary.AppendUvarint(append(box.frame, frameBatch), l.self)
	}
	box.frame = binary.AppendUvarint(box.frame, uint64(len(l.text)))
	box.frame = append(box.frame, l.text...)
	return box
}

func (l *links) box(node uint64) *outbox {
	for _, box := range l.boxes {
		if box.node == node {
			return box
		}
	}
	box := &outbox{node: node, subject: chainSubject(node)}
	l.boxes = append(l.boxes, box)
	return box
}

func (l *links) flush(box *outbox) {
	if len(box.frame) > 0 {
		l.publish(box, box.frame)
		box.frame = box.frame[:0]
	}
	box.now = false
}

// sendParts sends a long message in parts, which arrive in order or not at all.
func (l *links) sendParts(box *outbox, text []byte) {
	l.cut++
	offset := 0
	for part := range slices.Chunk(text, frameBytes) {
		frame := binary.AppendUvarint([]byte{framePart}, l.self)
		frame = binary.AppendUvarint(frame, l.cut)
		frame = binary.AppendUvarint(frame, uint64(len(text)))
		frame = binary.AppendUvarint(frame, uint64(offset))
		l.publish(box, append(frame, part...))
		offset += len(part)
	}
}

func (l *links) publish(box *outbox, frame []byte) {
	if err := l.conn.Publish(box.subject, frame); err != nil {
		l.d.metrics.unsent.Inc()
		l.d.log.Debug("a message to another node could not be sent", "node", box.node, "error", err)
	}
}

// receive takes a frame from another node and gives each shard the messages for its buckets. Each has its own sum, so
// those before a damaged one are taken.
func (l *links) receive(msg *nats.Msg) {
	from, err := l.decode(msg.Data, l.give)
	if err != nil {
		l.d.metrics.misdirected.Inc()
		l.d.log.Warn("a frame from another node is damaged", "from", from, "error", err)
	}
	for i, t := range l.tasks {
		if t != nil {
			l.d.shards[i].queue.put(t)
			l.tasks[i] = nil
		}
	}
}

func (l *links) give(from uint64, m *chain.Message) {
	if int64(m.Bucket) >= int64(l.d.buckets()) {
		return
	}
	t := &l.tasks[int(m.Bucket)%len(l.tasks)]
	if *t == nil {
		*t = newTask(taskChain, nil)
		(*t).from = from
	}
	(*t).messages = append((*t).messages, *m)
}

// decode reads a frame. The messages that it gives are parts of it.
func (l *links) decode(frame []byte, give func(from uint64, m *chain.Message)) (from uint64, err error) {
	if len(frame) == 0 {
		return 0, chain.ErrMessage
	}
	kind, rest := frame[0], frame[1:]
	if from, rest, err = number(rest); err != nil {
		return 0, err
	}
	switch kind {
	case frameBatch:
		for len(rest) > 0 {
			var size uint64
			if size, rest, err = number(rest); err != nil || size > uint64(len(rest)) {
				return from, chain.ErrMessage
			}
			m, err := chain.Decode(rest[:size:size])
			if err != nil {
				return from, err
			}
			give(from, &m)
			rest = rest[size:]
		}
		return from, nil
	case framePart:
		whole, err := l.assemble(from, rest)
		if err != nil || whole == nil {
			return from, err
		}
		m, err := chain.Decode(whole)
		if err == nil {
			give(from, &m)
		}
		return from, err
	}
	return from, fmt.Errorf("%w: a frame of kind %d", chain.ErrMessage, kind)
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
