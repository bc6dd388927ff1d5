package broker

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker/direct"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/internal/fault"
)

// frameBytes is how large a frame becomes at the most; a longer message is cut into parts.
const frameBytes = 512 << 10

// The first byte of a frame.
const (
	frameBatch = 1 // from, then messages, each with its length before it
	framePart  = 2 // from, number of the message, its length, offset of the part, bytes
	framePass  = 3 // what a passage carries (passage.go)
)

// laterTime is how long messages that no answer waits for stay for others to go with them.
const laterTime = 2 * time.Millisecond

// links carries the messages of the chains to the other nodes: what a batch of a shard has for one node is one frame,
// whatever buckets it is about. A frame goes over the direct link, or as a NATS message where there is none (direct.go). The
// chain repeats what is lost.
type links struct {
	d      *Daemon
	conn   *nats.Conn
	self   uint64
	direct *direct.Links // nil: all goes over NATS

	passages atomic.Pointer[map[uint64]*passage] // by node; replaced as a whole

	mu    sync.Mutex    // also of those who replace passages
	boxes []*outbox     // one for each other node; replaced as a whole
	later *time.Timer   // sends what stays
	armed bool          // it will
	cut   atomic.Uint64 // messages that were sent in parts

	faults sync.Mutex
	fault  corruption
}

// outbox is the frame in the making for one node. Its lock is held while a frame is sent, so that frames to one node are in
// the order in which they were made, and those to different nodes do not wait for each other.
type outbox struct {
	node    uint64
	subject string

	mu    sync.Mutex
	frame []byte
	text  []byte // scratch
	now   bool   // an answer waits for something in it
}

func chainSubject(node uint64) string { return "node." + strconv.FormatUint(node, 10) + ".chain" }

// openLinks begins to listen for what other nodes send to this one.
func (d *Daemon) openLinks(conn *nats.Conn, self uint64) (*links, error) {
	l := &links{d: d, conn: conn, self: self}
	l.passages.Store(&map[uint64]*passage{})
	l.later = time.AfterFunc(time.Hour, l.sendRest)
	l.later.Stop()
	sub, err := conn.Subscribe(chainSubject(self), l.inlet(0).receive)
	if err == nil {
		err = sub.SetPendingLimits(-1, -1) // the windows of the chains bound what is on its way
	}
	if err == nil {
		_, err = conn.Subscribe(gatherSubject(self), l.asked)
	}
	if err == nil {
		err = l.openEvents()
	}
	if err == nil {
		err = l.openDirect()
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
	for _, box := range l.meant(now, later) {
		if l.fill(box, now, later) {
			l.wakeLater()
		}
	}
}

// meant are the boxes of the nodes that messages are for.
func (l *links) meant(now, later []chain.Message) []*outbox {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, messages := range [][]chain.Message{now, later} {
		for i := range messages {
			node := messages[i].To.Node
			if !slices.ContainsFunc(l.boxes, func(b *outbox) bool { return b.node == node }) {
				l.boxes = append(slices.Clone(l.boxes), &outbox{node: node, subject: chainSubject(node)})
			}
		}
	}
	return l.boxes
}

// fill puts what is for its node into a box, and sends it if an answer waits for some of it; else it stays.
func (l *links) fill(box *outbox, now, later []chain.Message) (stays bool) {
	box.mu.Lock()
	defer box.mu.Unlock()
	for i := range now {
		if now[i].To.Node == box.node {
			l.put(box, &now[i])
			box.now = true
		}
	}
	for i := range later {
		if later[i].To.Node == box.node {
			l.put(box, &later[i])
			stays = true
		}
	}
	if box.now {
		l.flush(box)
		return false
	}
	return stays
}

func (l *links) wakeLater() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.armed {
		l.armed = true
		l.later.Reset(laterTime)
	}
}

// sendRest sends what has stayed long enough.
func (l *links) sendRest() {
	l.mu.Lock()
	boxes := l.boxes
	l.armed = false
	l.mu.Unlock()
	for _, box := range boxes {
		box.mu.Lock()
		l.flush(box)
		box.mu.Unlock()
	}
}

// put adds a message to the frame for its node, after what is there already. The box is locked.
func (l *links) put(box *outbox, m *chain.Message) {
	box.text = m.Encode(box.text[:0])
	if len(box.frame)+len(box.text) > frameBytes {
		l.flush(box)
	}
	if len(box.text) > frameBytes {
		l.sendParts(box, box.text)
		return
	}
	if len(box.frame) == 0 {
		box.frame = binary.AppendUvarint(append(box.frame, frameBatch), l.self)
	}
	box.frame = binary.AppendUvarint(box.frame, uint64(len(box.text)))
	box.frame = append(box.frame, box.text...)
}

func (l *links) flush(box *outbox) {
	if len(box.frame) > 0 {
		l.publish(box, box.frame)
		box.frame = box.frame[:0]
	}
	box.now = false
}

// sendParts sends a long message in parts, which arrive in order or not at all: one that is not behind the one before it, since
// the way has changed between them, drops the message.
func (l *links) sendParts(box *outbox, text []byte) {
	cut := l.cut.Add(1)
	offset := 0
	for part := range slices.Chunk(text, frameBytes) {
		frame := binary.AppendUvarint([]byte{framePart}, l.self)
		frame = binary.AppendUvarint(frame, cut)
		frame = binary.AppendUvarint(frame, uint64(len(text)))
		frame = binary.AppendUvarint(frame, uint64(offset))
		l.publish(box, append(frame, part...))
		offset += len(part)
	}
}

// publish sends a frame the faster way that there is. A direct link that breaks meanwhile may have taken it: then it is lost, or
// comes twice.
func (l *links) publish(box *outbox, frame []byte) {
	if p := l.passage(box.node); p != nil && p.with(frame) || p == nil && l.direct != nil && l.direct.Send(box.node, frame) {
		return
	}
	if err := l.conn.Publish(box.subject, frame); err != nil {
		l.d.metrics.unsent.Inc()
		l.d.log.Debug("a message to another node could not be sent", "node", box.node, "error", err)
	}
}
