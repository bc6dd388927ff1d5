package broker

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/bucket/chain"
)

// errSender: a node sends in another one's name.
var errSender = errors.New("a frame of another node")

// inlet takes the frames that come one way: over NATS, or over one direct link. Only the goroutine that reads there touches it.
type inlet struct {
	d     *Daemon
	node  uint64               // all that comes is from this node; 0: from any
	parts map[uint64]*assembly // by sender
	tasks []*task              // of the frame that is read, by shard
	m     chain.Message        // the one that is read
}

// assembly is a message of which parts have come.
type assembly struct {
	number uint64
	bytes  []byte
	have   int
}

func (l *links) inlet(node uint64) *inlet {
	return &inlet{d: l.d, node: node, parts: make(map[uint64]*assembly), tasks: make([]*task, len(l.d.shards))}
}

// receive takes a frame that came over NATS.
func (in *inlet) receive(msg *nats.Msg) {
	_ = in.take(msg.Data) // it was told
}

// take takes a frame from another node and gives each shard the messages for its buckets. Each has its own sum, so
// those before a damaged one are taken.
func (in *inlet) take(frame []byte) error {
	from, err := in.decode(frame, in.give)
	if err != nil {
		in.d.metrics.misdirected.Inc()
		in.d.log.Warn("a frame from another node is damaged", "from", from, "error", err)
	}
	for i, t := range in.tasks {
		if t != nil {
			in.d.shards[i].queue.put(t)
			in.tasks[i] = nil
		}
	}
	return err
}

func (in *inlet) give(from uint64, m *chain.Message) {
	if int64(m.Bucket) >= int64(in.d.buckets()) {
		return
	}
	t := &in.tasks[int(m.Bucket)%len(in.tasks)]
	if *t == nil {
		*t = newTask(taskChain, nil)
		(*t).from = from
	}
	(*t).addMessage(m)
}

// decode reads a frame. The messages that it gives are parts of it; who takes one leaves the memory of another.
func (in *inlet) decode(frame []byte, give func(from uint64, m *chain.Message)) (from uint64, err error) {
	if len(frame) == 0 {
		return 0, chain.ErrMessage
	}
	kind, rest := frame[0], frame[1:]
	if from, rest, err = number(rest); err != nil {
		return 0, err
	}
	if in.node != 0 && from != in.node {
		return from, fmt.Errorf("%w: it came from node %d", errSender, in.node)
	}
	switch kind {
	case frameBatch:
		delete(in.parts, from) // of a message whose rest took another way
		for len(rest) > 0 {
			var size uint64
			if size, rest, err = number(rest); err != nil || size > uint64(len(rest)) {
				return from, chain.ErrMessage
			}
			if err := in.m.Decode(rest[:size:size]); err != nil {
				return from, err
			}
			give(from, &in.m)
			rest = rest[size:]
		}
		return from, nil
	case framePart:
		whole, err := in.assemble(from, rest)
		if err != nil || whole == nil {
			return from, err
		}
		if err := in.m.Decode(whole); err != nil {
			return from, err
		}
		give(from, &in.m)
		return from, nil
	}
	return from, fmt.Errorf("%w: a frame of kind %d", chain.ErrMessage, kind)
}

// assemble puts parts together; a part that does not follow the last one drops the message, which the chain sends again.
func (in *inlet) assemble(from uint64, rest []byte) (whole []byte, err error) {
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
	a := in.parts[from]
	if offset == 0 {
		a = &assembly{number: cut, bytes: make([]byte, size)}
		in.parts[from] = a
	}
	if a == nil || a.number != cut || uint64(len(a.bytes)) != size || uint64(a.have) != offset {
		delete(in.parts, from)
		return nil, nil // an earlier part was lost
	}
	a.have += copy(a.bytes[offset:], rest)
	if a.have < len(a.bytes) {
		return nil, nil // more is to come
	}
	delete(in.parts, from)
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
