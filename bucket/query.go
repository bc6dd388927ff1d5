package bucket

import "github.com/opencluster/oclocks/subjects"

// How much of one lock a record tells: the rest is only counted, so that an answer fits into a message.
const (
	recordHolders = 256
	recordWaiters = 256
	recordBytes   = 256 << 10
)

func (t *Table) query(c *call) {
	rec := subjects.Record{Name: t.at.name}
	if t.at.lock != 0 {
		rec = t.record(t.at.lock, t.at.name, recordHolders, recordWaiters)
	}
	t.reply(c, &rec)
}

// record tells of a lock what everybody in its zone may know: never a key.
func (t *Table) record(id uint32, name string, holders, waiters int) subjects.Record {
	l := t.locks.at(id)
	rec := subjects.Record{Name: name, Held: l.hold != 0}
	if rec.Held {
		rec.Mode = l.mode
	}
	size := len(name)
	for id := l.hold; id != 0 && len(rec.Holders) < holders && size < recordBytes; id = t.holds.at(id).next {
		rec.Holders = append(rec.Holders, t.holder(id, &size))
	}
	if l.more == 0 {
		return rec
	}
	more := t.shares.at(l.more)
	rec.More = more.holders - len(rec.Holders)
	rec.Waiting = more.waiting
	rec.Slots = more.slots
	for id := more.first; id != 0 && len(rec.Queue) < waiters && size < recordBytes; id = t.waiters.at(id).next {
		w := t.waiters.at(id)
		size += len(w.holder) + len(w.user) + 128
		rec.Queue = append(rec.Queue, subjects.Waiter{
			Ticket: w.ticket, Holder: w.holder, User: w.user, Session: w.want.session, Mode: w.mode, Take: w.take, Since: w.since,
		})
	}
	return rec
}

func (t *Table) holder(id uint32, size *int) subjects.Holder {
	h := t.holds.at(id)
	told := subjects.Holder{
		Holder: t.texts.text(h.holder), User: t.texts.text(h.user), Session: t.sessionName(h.session), Token: h.token, Since: h.since, TTL: h.ttl,
		Take: t.take(h), Kind: h.kind(), Forced: h.is(holdForced),
	}
	if h.more != 0 {
		told.Data = t.extras.at(h.more).data
	}
	*size += len(told.Holder) + len(told.User) + len(told.Data) + 192
	return told
}

// check tells a resource whether a fencing token is still one of a holder's, and which tokens are.
func (t *Table) check(c *call) {
	l := t.lock()
	if l == nil || l.hold == 0 {
		last := t.lastToken(t.at.zone)
		t.reply(c, &subjects.Checked{Newest: last, Oldest: last + 1})
		return
	}
	newest := l.hold
	if l.more != 0 && t.shares.at(l.more).last != 0 {
		newest = t.shares.at(l.more).last
	}
	t.reply(c, &subjects.Checked{
		Current: t.holdByToken(c.req.Token) != 0, Newest: t.holds.at(newest).token, Oldest: t.holds.at(l.hold).token,
	})
}
