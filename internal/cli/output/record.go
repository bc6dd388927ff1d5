package output

import (
	"cmp"
	"strconv"
	"strings"
	"unicode"

	"github.com/opencluster/oclocks/subjects"
)

// record prints one lock with its holders and its queue.
func (p *Printer) record(r *subjects.Record) {
	holders := len(r.Holders) + r.More
	if p.Quiet {
		p.printf("%s\n", state(r))
		return
	}
	p.printf("%s: %s", Text(r.Name), state(r))
	if r.Held {
		p.printf(", %s, %s", r.Mode, count(holders, "holder"))
		if r.Mode == subjects.Semaphore && r.More == 0 {
			p.printf(", %d of %d slots taken", taken(r.Holders), r.Slots)
		}
	}
	p.printf(", %d waiting\n", waiting(r))
	p.holders(r)
	p.queue(r)
}

func state(r *subjects.Record) string {
	if r.Held {
		return "held"
	}
	return "free"
}

func taken(holders []subjects.Holder) (n int) {
	for i := range holders {
		n += int(holders[i].Take)
	}
	return n
}

func waiting(r *subjects.Record) int { return max(r.Waiting, len(r.Queue)) }

func (p *Printer) holders(r *subjects.Record) {
	if len(r.Holders) == 0 {
		return
	}
	var t table
	t.add("HOLDER", "USER", "TOKEN", "SINCE", "LIMIT", "SESSION", "DATA")
	for i := range r.Holders {
		h := &r.Holders[i]
		since := Span(p.age(h.Since)) + " ago"
		if h.Forced {
			since += ", being forced out"
		}
		t.add(Text(h.Holder), Text(h.User), strconv.FormatUint(h.Token, 10), since, limit(h.TTL), Text(h.Session), data(h.Data))
	}
	t.print(p, "  ")
	if r.More > 0 {
		p.printf("  and %d more\n", r.More)
	}
}

func (p *Printer) queue(r *subjects.Record) {
	if len(r.Queue) == 0 {
		return
	}
	var t table
	t.add("WAITER", "USER", "TICKET", "FOR", "MODE", "SESSION")
	for i := range r.Queue {
		w := &r.Queue[i]
		t.add(Text(w.Holder), Text(w.User), strconv.FormatUint(w.Ticket, 10), Span(p.age(w.Since)), mode(w.Mode, w.Take), Text(w.Session))
	}
	t.print(p, "  ")
	if more := waiting(r) - len(r.Queue); more > 0 {
		p.printf("  and %d more\n", more)
	}
}

// Page prints a page of a list, one line for each lock; the first page has the heading, further ones go on in its columns.
// In JSON the line is the record.
func (p *Printer) Page(page *subjects.Page) error {
	if p.JSON {
		for i := range page.Locks {
			if err := p.jsonLine(&page.Locks[i]); err != nil {
				return err
			}
		}
		return nil
	}
	p.buf.Reset()
	if p.list.widths == nil && !p.Quiet && len(page.Locks) > 0 {
		p.list.add("NAME", "STATE", "MODE", "WAITING", "SINCE", "TOKEN", "HOLDER")
	}
	for i := range page.Locks {
		r := &page.Locks[i]
		if p.Quiet {
			p.printf("%s\n", Text(r.Name))
			continue
		}
		p.list.add(p.line(r)...)
	}
	p.list.print(p, "")
	return p.flush()
}

// line is a lock as a row of a list: of several holders the first, who has held it longest.
func (p *Printer) line(r *subjects.Record) []string {
	cells := []string{Text(r.Name), state(r), r.Mode.String(), strconv.Itoa(waiting(r)), "-", "-", "-"}
	if len(r.Holders) == 0 {
		return cells
	}
	h := &r.Holders[0]
	cells[4], cells[5], cells[6] = Span(p.age(h.Since))+" ago", strconv.FormatUint(h.Token, 10), who(h.Holder, h.User)
	if more := len(r.Holders) + r.More - 1; more > 0 {
		cells[6] += " and " + count(more, "other")
	}
	return cells
}

// data is JSON text as it is, unless a string in it has what Text would quote.
func data(raw []byte) string {
	s := string(raw)
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return Text(s)
	}
	return cmp.Or(s, "-")
}

// who is the holder's own text, or the user where there is none.
func who(holder, user string) string {
	if holder == "" {
		return Text(user)
	}
	return Text(holder)
}
