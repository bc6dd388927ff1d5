package sim

import (
	"bytes"
	"slices"
	"strings"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/bucket/replicated"
	"github.com/opencluster/oclocks/conf/shared"
	"github.com/opencluster/oclocks/internal/check"
	"github.com/opencluster/oclocks/subjects"
)

// checker knows the promises (DESIGN, section 7), what clients were told and what was committed. It does not know how they are kept.
type checker struct {
	w       *world
	history *check.Checker

	state    *shared.State // the newest that anybody has applied
	commands map[uint64][]byte
	lossy    map[uint32]int // recoveries of a bucket: what was answered before may be lost

	locks   map[lockID]*lockHistory
	tokens  map[tokenID]string // the request that it was given to
	answers map[uint32]answering
}

// lockID is a name in a zone, tokenID a token of a zone in a bucket.
type (
	lockID  struct{ zone, name string }
	tokenID struct {
		zone  string
		place uint64
	}
)

// note adds to the history of what clients did and saw.
func (k *checker) note(e *check.Event) { k.history.Add(e) }

// answering is which node answers for a bucket.
type answering struct {
	epoch uint64
	node  uint64
	gen   int
}

// lockHistory is what is known of a name.
type lockHistory struct {
	lockID
	high  uint64 // the highest token that anybody was told
	holds map[uint64]*held
	order []*held // by the time at which they were told
}

// held is a hold as its client sees it.
type held struct {
	c        *client
	name     string
	token    uint64
	ticket   uint64
	key      uint64
	mode     subjects.Mode
	take     uint32
	eternal  bool
	from     int64
	until    int64 // its client believes in it until then
	back     bool  // its release was sent
	done     bool  // its release was answered
	lost     bool  // its client was told that it is lost, or it may be
	recovery int   // of the bucket, when it was asked for
	id       string
}

func newChecker(w *world) checker {
	return checker{
		w: w, commands: map[uint64][]byte{}, lossy: map[uint32]int{}, locks: map[lockID]*lockHistory{}, tokens: map[tokenID]string{},
		answers: map[uint32]answering{}, history: check.New(check.Options{Wild: w.mix.wild, MaxLease: w.mix.maxLease}),
	}
}

func (k *checker) bucketOf(name string) uint32 {
	n := k.w.mix.buckets
	if k.state != nil && k.state.Buckets() > 0 {
		n = k.state.Buckets()
	}
	return subjects.BucketOf(name, n)
}

// applied compares the logs of all nodes: at each change the same command.
func (k *checker) applied(m *machine, change uint64, command []byte, before, after *shared.State) {
	if known, ok := k.commands[change]; ok {
		if !bytes.Equal(known, command) {
			k.w.fail("change %d is %s at %v, and was %s elsewhere", change, command, m, known)
		}
		return
	}
	k.commands[change] = bytes.Clone(command)
	k.state = after
	k.w.stats.Changes++
	if !bytes.Contains(command, []byte(`"op":"views"`)) {
		k.w.tell("change %d: %.200s", change, command)
	}
	for b := len(before.Views); b < len(after.Views) && len(before.Views) > 0; b++ {
		k.lossy[uint32(b)] = k.lossy[uint32(b-len(before.Views))]
		k.answers[uint32(b)] = answering{}
	}
	for b := range after.Views {
		var old chain.View
		if b < len(before.Views) {
			old = before.Views[b]
		}
		v := after.Views[b]
		if v.Epoch == old.Epoch {
			continue
		}
		k.w.tell("change %d: bucket %d: %v", change, b, v)
		k.w.stats.Views++
		if v.Recovery && (!old.Recovery || old.Primary() != v.Primary()) {
			k.w.stats.Recoveries++
			k.forgive(uint32(b))
		}
	}
}

// forgive notes that the bucket's history may have lost its end, as its view says: what has no limit may be gone.
func (k *checker) forgive(b uint32) {
	k.lossy[b]++
	for _, l := range k.locks { // order: each by itself
		if k.bucketOf(l.name) != b {
			continue
		}
		for _, h := range l.holds { // order: each by itself
			h.done = h.done || h.eternal
			if h.eternal {
				h.lost, h.until = true, min(h.until, k.w.now)
			}
		}
	}
}

func (k *checker) processEnded(*process) {}

// round looks at one round of a copy: who releases something answers, if it is more than "ask again".
func (k *checker) round(p *process, c *cell, released []replicated.Effect) {
	if !slices.ContainsFunc(released, func(e replicated.Effect) bool {
		refusal, refused := e.Body.(*subjects.Refusal)
		return !refused || refusal.Code != 503
	}) {
		return
	}
	b := c.Number()
	view := c.Chain().View()
	now := answering{view.Epoch, p.number, p.m.gen}
	was := k.answers[b]
	switch {
	case now.epoch > was.epoch || was.epoch == 0:
		k.answers[b] = now
	case now.epoch == was.epoch && (now.node != was.node || now.gen != was.gen):
		k.w.fail("bucket %d: node %d (process %d) answers in epoch %d, as node %d (process %d) did", b, now.node, now.gen, now.epoch, was.node, was.gen)
	case now.epoch < was.epoch && !k.w.mix.wild:
		k.w.fail("bucket %d: node %d answers in epoch %d, node %d has answered in epoch %d", b, now.node, now.epoch, was.node, was.epoch)
	}
}

func (k *checker) alert(p *process, b uint32, text string) {
	k.w.stats.Alerts++
	k.w.tell("ALERT of %v about bucket %d: %s", p.m, b, text)
	if strings.Contains(text, "apply change") || strings.Contains(text, "the table's") || strings.Contains(text, "take over the state") {
		k.w.fail("%v: the table of bucket %d does not take what the chain has: %s", p.m, b, text)
	}
	if k.w.mix.damage == 0 && k.lossy[b] == 0 && !strings.Contains(text, "cannot take over") {
		k.w.fail("%v alerts about bucket %d, and nothing was damaged: %s", p.m, b, text)
	}
}

func (k *checker) lock(id lockID) *lockHistory {
	l := k.locks[id]
	if l == nil {
		l = &lockHistory{lockID: id, holds: map[uint64]*held{}}
		k.locks[id] = l
	}
	return l
}

// floor is the highest token of the lock that anybody was told, and how often the bucket was recovered.
func (k *checker) floor(id lockID) (token uint64, since int) {
	return k.lock(id).high, k.lossy[k.bucketOf(id.name)]
}

func (k *checker) held(id lockID, token uint64) *held { return k.lock(id).holds[token] }

// answer looks at an answer: a request has one effect, and is answered the same again.
func (k *checker) answer(a *ask, body subjects.Body, first bool) {
	if first || a.since != k.lossy[k.bucketOf(a.req.Name)] {
		return
	}
	g, granted := body.(*subjects.Grant)
	refusal, refused := body.(*subjects.Refusal)
	switch {
	case refused && refusal.Code == 410: // the grant that is asked for again is over
	case granted && a.grant != nil && (g.Token != a.grant.Token || g.Key != a.grant.Key || g.Ticket != a.grant.Ticket):
		k.w.fail("%s is granted %s twice: token %d key %x ticket %d, then %d %x %d", a.id, g.Name, a.grant.Token, a.grant.Key,
			a.grant.Ticket, g.Token, g.Key, g.Ticket)
	case granted && a.code == 410: // it was over before it could be told, and is told late
	case granted && a.grant == nil:
		k.w.fail("%s was refused %s and is granted it", a.id, g.Name)
	case refused && a.grant != nil:
		k.w.fail("%s was granted %s (token %d) and is refused: %s", a.id, a.grant.Name, a.grant.Token, refusal.AppendJSON(nil))
	}
}

// begin takes a grant that was told for the first time.
func (k *checker) begin(c *client, a *ask, g *subjects.Grant) {
	l := k.lock(lockID{c.zone, g.Name})
	bucket := k.bucketOf(g.Name)
	if g.Token <= a.floor && !k.w.mix.wild {
		k.w.fail("%s: token %d of %s, and %d was told before it was asked for", a.id, g.Token, g.Name, a.floor)
	}
	place := tokenID{c.zone, uint64(g.Bucket)<<53 | g.Token}
	if other, used := k.tokens[place]; used {
		k.w.fail("token %d of bucket %d is given to %s and to %s", g.Token, g.Bucket, other, a.id)
	}
	k.tokens[place] = a.id
	l.high = max(l.high, g.Token)
	h := &held{
		c: c, name: g.Name, token: g.Token, ticket: g.Ticket, key: g.Key, mode: g.Mode, take: max(1, g.Take), eternal: g.TTL == 0,
		from: k.w.now, recovery: a.since, id: a.id,
	}
	if g.Name[0] != 'm' && g.Name[0] != 's' && !k.w.mix.wild {
		for _, o := range l.holds { // order: any is one too many
			if o.recovery == h.recovery && h.recovery == k.lossy[bucket] && (o.token < h.token) != (o.ticket < h.ticket) {
				k.w.fail("%s: tickets %d and %d of %s were granted in the order of tokens %d and %d", a.id, o.ticket, h.ticket, h.name, o.token, h.token)
				break
			}
		}
	}
	l.holds[h.token] = h
	l.order = append(l.order, h)
	if h.recovery != k.lossy[bucket] && h.eternal {
		h.lost = true
	}
}

// trust begins or goes on with what a client believes.
func (k *checker) trust(c *client, name string, token uint64, until int64) {
	h := k.held(lockID{c.zone, name}, token)
	if h == nil || h.back || h.lost || until <= k.w.now {
		return
	}
	h.until = max(h.until, until)
	if k.w.mix.wild {
		return
	}
	sum := uint32(0)
	for _, o := range k.lock(lockID{c.zone, name}).order {
		if o.until <= k.w.now || o.back {
			continue
		}
		sum += o.take
		if o != h && (o.mode == subjects.Exclusive || h.mode == subjects.Exclusive) {
			k.w.fail("%s believes in %s (token %d, until %s, %s), and so does %s (token %d, until %s, %s)", c.name, name, h.token,
				span(h.until), h.id, o.c.name, o.token, span(o.until), o.id)
			return
		}
	}
	if h.mode == subjects.Semaphore && sum > 3 {
		k.w.fail("%d of 3 of %s are taken", sum, name)
	}
}

// givenBack notes that the client does not believe in it any more.
func (k *checker) givenBack(id lockID, token uint64) {
	if h := k.held(id, token); h != nil {
		h.back, h.until = true, k.w.now
	}
}

// lose notes that the client was told that the hold is over.
func (k *checker) lose(id lockID, token uint64) {
	h := k.held(id, token)
	if h == nil || h.back {
		return
	}
	if h.eternal && !h.lost {
		k.w.fail("%s has lost %s (token %d), which has no limit", h.c.name, id.name, token)
	}
	h.lost, h.until = true, min(h.until, k.w.now)
}

func (k *checker) released(zone string, g *subjects.Grant, r *subjects.Released) {
	if h := k.held(lockID{zone, g.Name}, g.Token); h != nil {
		h.done = true
	}
	if r.Token != g.Token {
		k.w.fail("the release of token %d of %s has released %d", g.Token, g.Name, r.Token)
	}
}
