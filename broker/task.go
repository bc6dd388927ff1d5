package broker

import (
	"sync"
	"time"

	"github.com/opencluster/oclocks/broker/parking"
	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/subjects"
)

type taskKind uint8

const (
	taskOne   taskKind = iota // a request for one bucket
	taskEach                  // a request for every bucket of the shard; gather collects
	taskKeep                  // keep-alives: keeping has them
	taskChain                 // messages from another node's copies
	taskCall                  // the daemon's own work: call, between two batches
)

// task is one unit of a shard's work. Tasks of requests are pooled: the table keeps no reference to in or req.
type task struct {
	kind    taskKind
	zone    *zone
	bucket  uint32
	size    int // of the request's body, in bytes
	in      bucket.Input
	req     subjects.Request
	gather  *gather
	call    func(s *shard)
	keeping *keeping
	trip    parking.Trip // of the request
	late    int64        // when it is put off no more, in nanoseconds; 0: it was not
	pause   time.Duration

	via    *passage // that the request has come over; nil: it came over NATS
	number uint64   // of the request there
	twin   *task    // another one with the same caller, which came after it

	from     uint64 // node that sent the messages
	messages []chain.Message
}

// weight is for how many requests it counts in a batch.
func (t *task) weight() int {
	if t.kind == taskKeep {
		return len(t.keeping.all)
	}
	return 1
}

// keepMessages is for how many messages a task that is through keeps the memory.
const keepMessages = 64

var taskPool = sync.Pool{New: func() any { return new(task) }}

func newTask(kind taskKind, z *zone) *task {
	t := taskPool.Get().(*task)
	t.kind, t.zone = kind, z
	return t
}

// Trip is what the request has been through.
func (t *task) Trip() *parking.Trip { return &t.trip }

// Load is whose request it is, and its size in bytes.
func (t *task) Load() (*zone, int) { return t.zone, t.size }

// addMessage takes a message and leaves the memory of one that was there before.
func (t *task) addMessage(m *chain.Message) {
	n := len(t.messages)
	if n < cap(t.messages) {
		t.messages = t.messages[:n+1]
	} else {
		t.messages = append(t.messages, chain.Message{})
	}
	t.messages[n], *m = *m, t.messages[n]
}

func (t *task) free() {
	if t.kind == taskCall {
		return
	}
	messages := t.messages
	for i := range messages {
		messages[i].Reset()
	}
	if cap(messages) > keepMessages {
		messages = nil
	}
	*t = task{messages: messages[:0]} // their memory is used again
	taskPool.Put(t)
}
