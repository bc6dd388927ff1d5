package bucket

import (
	"maps"
	"slices"

	"github.com/opencluster/oclocks/internal/mutant"
	"github.com/opencluster/oclocks/subjects"
)

// A snapshot is everything replicated and nothing else: the same replicated state gives the same bytes, whatever led to
// it. Everything in it is in the order of names, tokens, tickets or age; what can be derived is left out.

// snapshotVersion begins every snapshot.
const snapshotVersion = 1

// AppendSnapshot appends the table's replicated state to dst. It looks at every lock, which takes some hundred
// nanoseconds each.
func (t *Table) AppendSnapshot(dst []byte) []byte {
	c := coder{buf: dst}
	t.headFields(&c)
	names := slices.Sorted(maps.Keys(t.byName))
	n := len(names)
	c.count(&n)
	for _, name := range names {
		t.writeZone(&c, t.byName[name])
	}
	return c.buf
}

// headFields writes or reads what is before the zones.
func (t *Table) headFields(c *coder) {
	version := uint8(snapshotVersion)
	num(c, &version, anyUint8)
	if version != snapshotVersion {
		c.fail()
	}
	num(c, &t.buckets, maxBuckets)
	num(c, &t.born, maxBuckets)
	num(c, &t.seq, anyUint)
	num(c, &t.epoch, anyUint)
	num(c, &t.term, maxTerm)
	num(c, &t.counter, maxCounter)
}

func (z *zone) headFields(c *coder) {
	num(c, &z.token, subjects.MaxToken)
	num(c, &z.ticket, anyUint)
}

func (t *Table) writeZone(c *coder, z *zone) {
	c.text(&z.name, maxZone)
	z.headFields(c)
	n := len(z.ended.ends)
	c.count(&n)
	for i := range n {
		z.ended.ends[(z.ended.next+i)%n].fields(c)
	}
	ids := slices.Sorted(maps.Keys(z.sessions))
	n = len(ids)
	c.count(&n)
	for _, id := range ids {
		s := t.sessions.at(z.sessions[id])
		s.fields(c)
		t.writeFinished(c, s.finished)
	}
	t.writeFinished(c, z.finished)
	n = z.locks
	c.count(&n)
	if n > 0 {
		z.order.ascend("", func(id uint32) bool {
			t.writeLock(c, id)
			return true
		})
	}
}

func (e *end) fields(c *coder) {
	c.fixed(&e.key)
	c.fixed(&e.name)
	num(c, &e.why, uint64(whyEnd)-1)
}

func (s *session) fields(c *coder) {
	c.text(&s.id, maxSessionID)
	c.text(&s.user, maxUser)
	num(c, &s.incarnation, anyUint)
	num(c, &s.lease, uint64(subjects.MaxTTL))
	c.text(&s.conn.Server, maxUser)
	num(c, &s.conn.CID, anyUint)
	num(c, &s.state, uint64(sessionDormant))
	num(c, &s.why, uint64(whyEnd)-1)
	num(c, &s.released, maxRecords)
	num(c, &s.done, anyUint)
	num(c, &s.forgot, anyUint)
}

func (t *Table) writeFinished(c *coder, l list) {
	n := 0
	for id := l.first; id != 0; id = t.entries.at(id).next {
		n++
	}
	c.count(&n)
	for id := l.first; id != 0; id = t.entries.at(id).next {
		t.entries.at(id).fields(c)
	}
}

// fields writes or reads a finished request.
func (e *entry) fields(c *coder) {
	e.request.fields(c)
	c.text(&e.user, maxUser)
	c.fixed(&e.name)
	c.blob(&e.outcome, maxOutcome)
}

// maxOutcome is more than any packed answer has: texts of refusals, of users and sessions.
const maxOutcome = 16 << 10

func (t *Table) writeLock(c *coder, id uint32) {
	l := t.locks.at(id)
	name := t.locks.name(l)
	c.text(&name, subjects.MaxName)
	read := l.more != 0 && t.shares.at(l.more).read
	c.flag(&read)
	n := 0
	for hid := l.hold; hid != 0; hid = t.holds.at(hid).next {
		n++
	}
	c.count(&n)
	for hid := l.hold; hid != 0; hid = t.holds.at(hid).next {
		image := t.holdImage(l, t.holds.at(hid))
		image.fields(c)
	}
	n = t.waiting(l)
	if l.hold != 0 && mutant.On(mutant.SnapshotWithoutQueue) {
		n = 0
	}
	c.count(&n)
	if n == 0 {
		return
	}
	for wid := t.shares.at(l.more).first; wid != 0; wid = t.waiters.at(wid).next {
		w := t.waiters.at(wid)
		image := waiterImage{want: w.want, ticket: w.ticket, since: w.since, known: w.entry != 0}
		if image.known {
			image.outcome = t.entries.at(w.entry).outcome
		}
		image.fields(c)
	}
}

// holdImage is a hold in a snapshot: what it was granted for, and what has become of it.
type holdImage struct {
	want
	token  uint64
	since  int64
	forced bool
}

func (t *Table) holdImage(l *lock, h *hold) holdImage {
	image := holdImage{
		want: want{
			mode: l.mode, kind: h.kind(), take: t.take(h), ttl: h.ttl, key: h.key,
			holder: t.texts.text(h.holder), user: t.texts.text(h.user), session: t.sessionName(h.session),
		},
		token: h.token, since: h.since, forced: h.is(holdForced),
	}
	if l.mode == subjects.Semaphore {
		image.slots = t.shares.at(l.more).slots
	}
	if h.is(holdRecall) {
		image.bits |= wantRecall
	}
	if h.more == 0 {
		return image
	}
	more := t.extras.at(h.more)
	image.data = more.data
	if h.is(holdGrace) {
		image.bits |= wantGrace
		image.grace = more.grace
	}
	if more.request != 0 {
		image.bits |= wantEnqueue
		image.request = request{op: subjects.OpAcquire, number: more.request}
	}
	return image
}

func (i *holdImage) fields(c *coder) {
	i.want.fields(c)
	num(c, &i.token, subjects.MaxToken)
	num(c, &i.since, anyInt)
	c.flag(&i.forced)
}

// waiterImage is a waiter in a snapshot. known says that its request is remembered, outcome is what it was answered so far.
type waiterImage struct {
	want
	ticket  uint64
	since   int64
	known   bool
	outcome []byte
}

func (i *waiterImage) fields(c *coder) {
	i.want.fields(c)
	num(c, &i.ticket, anyUint)
	num(c, &i.since, anyInt)
	c.flag(&i.known)
	if i.known {
		c.blob(&i.outcome, maxOutcome)
	}
}
