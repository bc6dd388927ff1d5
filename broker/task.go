package broker

import (
	"sync"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/subjects"
)

type taskKind uint8

const (
	taskOne   taskKind = iota // a request for one bucket
	taskEach                  // a request for every bucket of the shard; gather collects
	taskChain                 // messages from another node's copies
	taskCall                  // the daemon's own work: call, between two batches
)

// task is one unit of a shard's work. Tasks of requests are pooled: the table keeps no reference to in or req.
type task struct {
	kind   taskKind
	zone   *zone
	bucket uint32
	size   int // of the request's body, in bytes
	in     bucket.Input
	req    subjects.Request
	gather *gather
	call   func(s *shard)

	hops        int   // how often the request is passed on with the next time; 0: its caller chose the bucket's subject
	parkedUntil int64 // when it is given up; 0: it has not waited for a primary

	lingers int64 // until when it is put off before it is passed on again; 0: it was not

	from     uint64 // node that sent the messages
	messages []chain.Message
}

// keepMessages is for how many messages a task that is through keeps the memory.
const keepMessages = 64

var taskPool = sync.Pool{New: func() any { return new(task) }}

func newTask(kind taskKind, z *zone) *task {
	t := taskPool.Get().(*task)
	t.kind, t.zone = kind, z
	return t
}

func (t *task) free() {
	if t.kind == taskCall {
		return
	}
	messages := t.messages
	if clear(messages); cap(messages) > keepMessages {
		messages = nil
	}
	*t = task{messages: messages[:0]} // their memory is used again
	taskPool.Put(t)
}
