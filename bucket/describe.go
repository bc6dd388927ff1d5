package bucket

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// Describe draws the table for people and for tests: all of it, so not for a large one. Tokens are shown as
// term.counter, and on a primary what is due is shown as the time from the last step.
func (t *Table) Describe() string {
	var b strings.Builder
	role := "replica"
	if t.primary {
		role = "primary"
		if t.recovering() {
			role += " recovering" + t.in(t.recoverUntil)
		}
	}
	fmt.Fprintf(&b, "bucket %d seq %d epoch %d term %d %s\n", t.cfg.Bucket, t.seq, t.epoch, t.term, role)
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		z := t.byName[name]
		fmt.Fprintf(&b, "zone %s token %s ticket %d\n", z.name, drawToken(z.token), z.ticket)
		for _, id := range slices.Sorted(maps.Keys(z.sessions)) {
			t.drawSession(&b, t.sessions.at(z.sessions[id]))
		}
		t.drawRequests(&b, z)
		if z.locks > 0 {
			z.order.ascend("", func(id uint32) bool {
				t.drawLock(&b, id)
				return true
			})
		}
	}
	return b.String()
}

// in is how long it is until an instant, on a primary: " +10s".
func (t *Table) in(at int64) string {
	if !t.primary || at == never {
		return ""
	}
	return fmt.Sprintf(" %+g", time.Duration(at-t.now.Boot).Seconds()) + "s"
}

func drawToken(token uint64) string {
	return fmt.Sprintf("%d.%d", token>>counterBits, token&maxCounter)
}

func (t *Table) drawSession(b *strings.Builder, s *session) {
	fmt.Fprintf(b, "  session %s user %s incarnation %d lease %s", s.id, s.user, s.incarnation, s.lease)
	switch s.state {
	case sessionEndedBy:
		fmt.Fprintf(b, " ended %s%s\n", s.why, t.in(s.deadline))
		return
	case sessionDormant:
		fmt.Fprintf(b, " dormant, %d static\n", s.statics)
		return
	}
	fmt.Fprintf(b, " holds %d waits %d%s", s.bound+s.statics, s.waiting, t.in(s.deadline))
	if s.conn.known() {
		fmt.Fprintf(b, " conn %s/%d", s.conn.Server, s.conn.CID)
	}
	if s.parted {
		b.WriteString(" parted")
	}
	if s.done > 0 {
		fmt.Fprintf(b, " done %d", s.done)
	}
	b.WriteByte('\n')
	for _, slot := range s.window.slots[s.window.head:] {
		if slot.entry != 0 {
			t.drawEntry(b, "    ", t.entries.at(slot.entry))
		}
	}
}

func (t *Table) drawRequests(b *strings.Builder, z *zone) {
	keys := slices.SortedFunc(maps.Keys(z.requests), func(a, b userRequest) int {
		if c := strings.Compare(a.user, b.user); c != 0 {
			return c
		}
		return strings.Compare(a.id, b.id)
	})
	for _, key := range keys {
		t.drawEntry(b, "  ", t.entries.at(z.requests[key]))
	}
}

func (t *Table) drawEntry(b *strings.Builder, indent string, e *entry) {
	fmt.Fprintf(b, "%srequest %s %s by %s:", indent, e.request.text(), e.op, e.user)
	if e.waiter != 0 {
		b.WriteString(" waits")
	}
	body, _ := unpackBody(e.outcome, e.user, t.sessionName(e.session))
	switch o := body.(type) {
	case *subjects.Grant:
		fmt.Fprintf(b, " granted %s", drawToken(o.Token))
	case *subjects.Released:
		fmt.Fprintf(b, " released %s", drawToken(o.Token))
	case *subjects.Queued:
		fmt.Fprintf(b, " queued %d", o.Ticket)
	case *subjects.Forced:
		fmt.Fprintf(b, " forced %s", drawToken(o.Token))
	case *subjects.Refusal:
		fmt.Fprintf(b, " refused %d %s", o.Code, o.Reason)
	}
	b.WriteByte('\n')
}

func (t *Table) drawLock(b *strings.Builder, id uint32) {
	l := t.locks.at(id)
	fmt.Fprintf(b, "  lock %s", strconv.Quote(t.locks.name(l)))
	switch {
	case l.hold == 0:
		b.WriteString(" free")
	case l.mode == subjects.Semaphore:
		fmt.Fprintf(b, " semaphore %d of %d", t.shares.at(l.more).taken, t.shares.at(l.more).slots)
	default:
		b.WriteString(" " + l.mode.String())
	}
	if l.more != 0 {
		b.WriteString(t.in(t.shares.at(l.more).recheck))
	}
	b.WriteByte('\n')
	for hid := l.hold; hid != 0; hid = t.holds.at(hid).next {
		h := t.holds.at(hid)
		fmt.Fprintf(b, "    hold %s %s by %s", drawToken(h.token), h.kind(), t.owner(t.texts.text(h.user), h.session))
		t.drawHold(b, h)
		b.WriteByte('\n')
	}
	if l.more == 0 {
		return
	}
	for wid := t.shares.at(l.more).first; wid != 0; wid = t.waiters.at(wid).next {
		w := t.waiters.at(wid)
		fmt.Fprintf(b, "    wait %d %s", w.ticket, w.mode)
		if w.mode == subjects.Exclusive && w.drain != subjects.Hard {
			b.WriteString(" " + w.drain.String())
		}
		if w.mode == subjects.Semaphore {
			fmt.Fprintf(b, " %d", w.take)
		}
		fmt.Fprintf(b, " by %s%s\n", t.owner(w.user, w.session), t.in(min(w.deadline, w.parted)))
	}
}

func (t *Table) drawHold(b *strings.Builder, h *hold) {
	if h.ttl > 0 {
		fmt.Fprintf(b, " ttl %s", h.ttl)
	}
	b.WriteString(t.in(t.holdDue(h)))
	if h.is(holdForced) {
		b.WriteString(" forced")
	}
	if take := t.take(h); take > 1 {
		fmt.Fprintf(b, " take %d", take)
	}
	if h.holder != 0 {
		fmt.Fprintf(b, " holder %s", strconv.Quote(t.texts.text(h.holder)))
	}
	if h.more == 0 {
		return
	}
	if more := t.extras.at(h.more); len(more.data) > 0 {
		fmt.Fprintf(b, " data %s", more.data)
	}
}

func (t *Table) owner(user string, sid uint32) string {
	if sid == 0 {
		return user
	}
	return user + "/" + t.sessions.at(sid).id
}
