package broker

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/opencluster/oclocks/broker/direct"
	"github.com/opencluster/oclocks/subjects"
)

// passVersion is the version of a direct link that takes frames of passages.
const passVersion = 2

// What is in a frame of a passage; each begins with the request's number there.
const (
	passAsk    = 1 // a request
	passAnswer = 2 // what its caller is to be told
	passDone   = 3 // its caller is told otherwise
	passBack   = 4 // it was not taken, since the node does not know its zone yet, or stops
)

// Bounds of what is passed on to one node and not answered. What is beyond goes over NATS. A zone has half of that at the most.
const (
	maxPassed      = 8192
	maxPassedBytes = 16 << 20
	maxPassedSize  = 32 << 10 // of one request
)

// errPassage: what came over a passage cannot be read.
var errPassage = errors.New("not a frame of a passage")

// passage is what goes over one direct link beside the chains' frames: requests that this node passes on to the other one, and
// answers to those that the other one has passed on. It ends with the link. Doc.go says why nothing is lost ("Passing on").
type passage struct {
	d    *Daemon
	link *direct.Link

	mu      sync.Mutex
	over    bool
	frame   []byte           // in the making
	last    uint64           // number that was given
	pending map[uint64]*task // passed on and not answered, by number
	bytes   int              // of them
	loads   map[*zone]load   // of each zone that has some
	idle    chan struct{}    // closed when nothing is pending; nil: nobody waits for that
}

// load is what a zone has pending in a passage.
type load struct{ requests, bytes int }

// openPassage is called when a link has come up. It may be so before the end of the one that it replaces is told of.
func (l *links) openPassage(link *direct.Link) *passage {
	p := newPassage(l.d, link)
	l.mu.Lock()
	all := maps.Clone(*l.passages.Load())
	old := all[link.Node()]
	all[link.Node()] = p
	l.passages.Store(&all)
	l.mu.Unlock()
	l.unanswered(old)
	return p
}

func newPassage(d *Daemon, link *direct.Link) *passage {
	return &passage{d: d, link: link, pending: make(map[uint64]*task), loads: make(map[*zone]load)}
}

// closePassage is called when its link is over and nothing comes over it any more.
func (l *links) closePassage(p *passage) {
	l.mu.Lock()
	if all := maps.Clone(*l.passages.Load()); all[p.link.Node()] == p {
		delete(all, p.link.Node())
		l.passages.Store(&all)
	}
	l.mu.Unlock()
	l.unanswered(p)
}

// unanswered ends a passage, if there is one, and has what is pending in it decided about.
func (l *links) unanswered(p *passage) {
	if p == nil {
		return
	}
	for _, t := range p.end() {
		l.d.unsure(t)
	}
}

// passage is the one to a node; nil: there is none.
func (l *links) passage(node uint64) *passage { return (*l.passages.Load())[node] }

// end gives what is pending; nothing more is taken.
func (p *passage) end() (pending []*task) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over, p.frame = true, p.frame[:0]
	for _, t := range p.pending { // order: each goes its own way
		pending = append(pending, t)
	}
	clear(p.pending)
	clear(p.loads)
	p.bytes = 0
	p.settled()
	return pending
}

// pass hands a request to the other node with the next frame; it is the passage's until it is answered. False: it has to go
// another way.
func (p *passage) pass(t *task) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || !p.fits(t) {
		return false
	}
	p.last++
	p.add(p.last, t)
	p.room()
	p.frame = t.appendTo(p.begin(passAsk, p.last))
	p.d.metrics.direct.Inc()
	return true
}

// fits says whether one more request may be pending. A zone has no more than what is left for others then, so there is always room for one.
func (p *passage) fits(t *task) bool {
	own := p.loads[t.zone]
	return t.size <= maxPassedSize && own.requests+1 <= maxPassed-len(p.pending)-1 && own.bytes+t.size <= maxPassedBytes-p.bytes-t.size
}

func (p *passage) add(number uint64, t *task) {
	own := p.loads[t.zone]
	p.loads[t.zone] = load{own.requests + 1, own.bytes + t.size}
	p.pending[number] = t
	p.bytes += t.size
}

// answer has the other node tell the caller of a request; code is "" if it was carried out. False: the link is over.
func (p *passage) answer(number uint64, code, text string, body []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return false
	}
	p.room()
	b := appendText(appendText(p.begin(passAnswer, number), code), text)
	p.frame = append(binary.AppendUvarint(b, uint64(len(body))), body...)
	return true
}

// note tells the other node what has become of a request.
func (p *passage) note(kind byte, number uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.room()
	p.frame = p.begin(kind, number)
}

// begin is the frame with the beginning of what is added to it.
func (p *passage) begin(kind byte, number uint64) []byte {
	if len(p.frame) == 0 {
		p.frame = append(p.frame, framePass)
	}
	return binary.AppendUvarint(append(p.frame, kind), number)
}

// room sends the frame if it is large.
func (p *passage) room() {
	if len(p.frame) >= frameBytes/2 {
		p.send()
	}
}

// flush sends the frame.
func (p *passage) flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.send()
}

// send sends what is in the frame, with frames of others that are to arrive before it. False: the link is over, or soon will be,
// and whatever was in the frame is taken care of then, by both ends.
func (p *passage) send(others ...[]byte) bool {
	if len(p.frame) > 0 {
		others = append(others, p.frame)
	}
	if len(others) == 0 {
		return true
	}
	sent := p.link.Send(others...)
	p.frame = p.frame[:0]
	return sent
}

// with sends a frame of the chains, and what the passage has.
func (p *passage) with(frame []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.send(frame)
}

// take takes a frame from the other node; an error closes the link.
func (p *passage) take(frame []byte) error {
	r := passReader{rest: frame[1:]}
	for len(r.rest) > 0 && r.err == nil {
		kind, n := r.byte(), r.number()
		switch kind {
		case passAsk:
			p.asked(n, &r)
		case passAnswer:
			code, text, body := r.text(), r.text(), r.bytes()
			if r.err == nil {
				p.answered(n, code, text, body)
			}
		case passDone:
			if t := p.remove(n); t != nil {
				t.done()
			}
		case passBack:
			if t := p.remove(n); t != nil {
				t.putOff()
			}
		default:
			r.err = fmt.Errorf("%w: kind %d", errPassage, kind)
		}
	}
	p.flush() // what was refused at once
	return r.err
}

// answered tells the caller of a request what the other node has said.
func (p *passage) answered(number uint64, code, text string, body []byte) {
	if t := p.remove(number); t != nil {
		t.tell(code, text, body)
		t.flush()
		t.free()
	}
}

// remove gives a request that is pending no more; nil: it is not pending.
func (p *passage) remove(number uint64) *task {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := p.pending[number]
	if t != nil {
		delete(p.pending, number)
		p.bytes -= t.size
		if own := p.loads[t.zone]; own.requests > 1 {
			p.loads[t.zone] = load{own.requests - 1, own.bytes - t.size}
		} else {
			delete(p.loads, t.zone)
		}
		p.settled()
	}
	return t
}

// settled tells who waits that nothing is pending.
func (p *passage) settled() {
	if p.idle != nil && len(p.pending) == 0 {
		close(p.idle)
		p.idle = nil
	}
}

// asked takes a request that the other node passes on. Its user and its session were proven there; nodes trust each other.
func (p *passage) asked(number uint64, r *passReader) {
	t, zone, body := r.task()
	if r.err != nil {
		return
	}
	z := p.d.zone(zone)
	if z == nil || z.stopping.Load() {
		t.free()
		p.note(passBack, number)
		return
	}
	t.kind, t.zone, t.via, t.number, t.size, t.in.Zone = taskOne, z, p, number, len(body), z.name
	z.stats.requested(t.req.Op)
	refusal := z.taken(t, body)
	if refusal == nil && !p.d.shardOf(t.bucket).queue.put(t) {
		refusal = overloaded()
	}
	if refusal != nil {
		t.answer(t.req.Op, refusal, nil)
		t.free()
	}
}

// taken makes a request that was passed on one of this node's.
func (z *zone) taken(t *task, body []byte) *subjects.Refusal {
	if refusal := t.req.Decode(t.req.Op, body); refusal != nil {
		return refusal
	}
	t.bucket = subjects.BucketOf(t.req.Name, uint32(z.d.buckets()))
	return nil
}

// wait gives a channel that is closed when nothing is pending.
func (p *passage) wait() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	idle := p.idle
	p.settled()
	return idle
}

// settleTime is how long a node that stops waits for the answers of others.
const settleTime = time.Second

// awaitPassed waits for what was passed on; it is called when no shard passes on any more. What is not answered then may be carried out,
// or not: its caller asks another node, if that does no harm.
func (d *Daemon) awaitPassed(ctx context.Context) {
	if d.links == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	for _, p := range *d.links.passages.Load() { // order: all are waited for
		p.flush()
		select {
		case <-p.wait():
		case <-ctx.Done():
		}
		for _, t := range p.end() {
			if t.repeatable() {
				t.refuse(stopping())
			} else {
				t.refuse(unknown())
			}
		}
	}
}
