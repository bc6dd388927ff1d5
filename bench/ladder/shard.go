package ladder

import (
	"encoding/binary"
	"runtime"
	"sync"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/internal/journal"
	"github.com/opencluster/oclocks/subjects"
)

const (
	inboxSize  = 8 << 10
	changeSize = 160 // of a grant or a release in the journal and the chain, about
)

// Buckets of the journal: what this node decided, and what another one did.
const (
	own     = 1
	another = 2
)

// shard does what a daemon's does, by the same goroutines: the pump takes requests from the connection and queues them, one goroutine
// takes all that is queued as a batch, writes one file and one frame to each node.
type shard struct {
	kind    byte
	next    uint64
	way     way
	journal *journal.Journal
	inbox   chan *nats.Msg

	mu    sync.Mutex
	queue []task
	wake  chan struct{}

	// Of the goroutine that runs.
	seq     [another + 1]uint64
	waiting map[uint64]*nats.Msg
	records []journal.Record
	down    []byte // to the next node
	up      []byte // to the one before
	before  uint64
	text    []byte
}

// task is a request, or a frame from another node.
type task struct {
	msg   *nats.Msg
	req   subjects.Request
	from  uint64
	frame []byte
}

func newShard(kind int, next uint64, w way) *shard {
	return &shard{kind: byte(kind), next: next, way: w, inbox: make(chan *nats.Msg, inboxSize), wake: make(chan struct{}, 1),
		waiting: make(map[uint64]*nats.Msg)}
}

func (s *shard) encoded() bool { return s.kind >= stepEncoded }

func (s *shard) ask(msg *nats.Msg) { s.inbox <- msg }

func (s *shard) pump() {
	for msg := range s.inbox {
		t := task{msg: msg}
		if s.encoded() && t.req.Decode(subjects.OpAcquire, msg.Data) != nil {
			continue // it fails at the client
		}
		s.put(t)
	}
}

func (s *shard) take(from uint64, frame []byte) { s.put(task{from: from, frame: frame}) }

func (s *shard) put(t task) {
	s.mu.Lock()
	s.queue = append(s.queue, t)
	s.mu.Unlock()
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

func (s *shard) run() {
	var batch []task
	for range s.wake {
		runtime.Gosched() // as a daemon's shard does, so that those come first who bring more
		runtime.Gosched()
		s.mu.Lock()
		batch, s.queue = s.queue, batch[:0]
		s.mu.Unlock()
		s.batch(batch)
		clear(batch)
	}
}

// batch is first what is decided, then the journal, then what is sent.
func (s *shard) batch(tasks []task) {
	s.records, s.down, s.up = s.records[:0], append(s.down[:0], s.kind), append(s.up[:0], s.kind)
	answers := make([]*nats.Msg, 0, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		if t.msg != nil {
			seq, data := s.record(own)
			s.waiting[seq] = t.msg
			s.down = s.add(s.down, chain.Message{Kind: chain.Append, Prev: chain.Point{Seq: seq - 1}, Changes: []chain.Change{{Seq: seq, Data: data}}})
			continue
		}
		for rest := t.frame; len(rest) >= 4; {
			size := 4 + int(binary.BigEndian.Uint32(rest))
			answers = s.heard(t.from, rest[4:size], answers)
			rest = rest[size:]
		}
	}
	if s.journal != nil && len(s.records) > 0 && s.journal.Append(s.records) != nil {
		return // nobody is answered then
	}
	if len(s.down) > 1 {
		s.way.Send(s.next, s.down)
	}
	if len(s.up) > 1 {
		s.way.Send(s.before, s.up)
	}
	for _, msg := range answers {
		s.answer(msg)
	}
}

// record numbers a change and puts it into what the journal gets.
func (s *shard) record(bucket uint32) (seq uint64, data []byte) {
	s.seq[bucket]++
	data = make([]byte, changeSize)
	s.records = append(s.records, journal.Record{Bucket: bucket, Seq: s.seq[bucket], Kind: journal.Change, Payload: data})
	return s.seq[bucket], data
}

// heard takes a message of another node: a cascade is confirmed, a confirmation answers.
func (s *shard) heard(from uint64, text []byte, answers []*nats.Msg) []*nats.Msg {
	m := chain.Message{Kind: chain.Kind(text[0])}
	if s.encoded() {
		var err error
		if m, err = chain.Decode(text); err != nil {
			return answers
		}
	} else {
		m.Confirmed = binary.BigEndian.Uint64(text[1:])
	}
	if m.Kind == chain.Append {
		if s.encoded() {
			m.Confirmed = m.Changes[0].Seq
		}
		s.record(another)
		s.before = from
		s.up = s.add(s.up, chain.Message{Kind: chain.Ack, Confirmed: m.Confirmed, Progress: []chain.Progress{{Member: chain.Member{Node: 1, Inc: 1}, Seq: m.Confirmed}}})
		return answers
	}
	if msg := s.waiting[m.Confirmed]; msg != nil {
		delete(s.waiting, m.Confirmed)
		answers = append(answers, msg)
	}
	return answers
}

// add puts a message into a frame, with its length before it: as the chain encodes it, or as many bytes.
func (s *shard) add(frame []byte, m chain.Message) []byte {
	if s.encoded() {
		m.From, m.To = chain.Member{Node: 1, Inc: 1}, chain.Member{Node: 2, Inc: 1}
		s.text = m.Encode(s.text[:0])
	} else {
		seq := m.Confirmed
		if m.Kind == chain.Append {
			seq = m.Changes[0].Seq
		}
		s.text = binary.BigEndian.AppendUint64(append(s.text[:0], byte(m.Kind)), seq)
		for i := range m.Changes {
			s.text = append(s.text, m.Changes[i].Data...)
		}
	}
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(s.text)))
	return append(frame, s.text...)
}

func (s *shard) answer(msg *nats.Msg) {
	body := msg.Data
	if s.encoded() {
		g := subjects.Grant{Name: "orders/4711", Key: 1 << 60, Token: 1 << 40, Take: 1, Node: "n1", Durable: true}
		s.text = g.AppendJSON(s.text[:0])
		body = s.text
	}
	_ = msg.Respond(body) // what is not answered fails at the client
}
