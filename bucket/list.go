package bucket

import (
	"strings"

	"github.com/opencluster/oclocks/subjects"
)

// What one call of List looks at and tells at the most.
const (
	scanMax      = 4096
	pageHolders  = 16
	pageWaiters  = 16
	pageMaxBytes = 256 << 10
)

// List gives records of a zone's locks in the order of their names' bytes, beginning after the name req.After, that have
// req.Prefix and pass the filters State and OlderThan: at most req.Limit of them, and it looks at a bounded number of
// names. If done is false there may be more, after the name next; up to that name all that there is has been told.
func (t *Table) List(zone string, req *subjects.Request, now Now) (recs []subjects.Record, next string, done bool) {
	z := t.zoneOf(zone)
	if z == nil || t.broken != nil || z.locks == 0 {
		return nil, "", true
	}
	limit := int(min(max(req.Limit, 1), subjects.MaxListLimit))
	from := max(req.Prefix, req.After)
	scanned, size := 0, 0
	done = true
	z.order.ascend(from, func(id uint32) bool {
		l := t.locks.at(id)
		name := t.locks.name(l)
		if name == req.After {
			return true
		}
		if !strings.HasPrefix(name, req.Prefix) {
			return false
		}
		if scanned == scanMax || len(recs) == limit || size >= pageMaxBytes {
			done = false
			return false
		}
		scanned++
		next = name
		if t.listed(l, req, now) {
			rec := t.record(id, name, pageHolders, pageWaiters)
			size += sizeOf(&rec)
			recs = append(recs, rec)
		}
		return true
	})
	if done {
		next = ""
	}
	return recs, next, done
}

// listed says whether a lock passes the filters of a list. Its age is that of its oldest holder.
func (t *Table) listed(l *lock, req *subjects.Request, now Now) bool {
	switch {
	case req.State == subjects.Held && l.hold == 0:
		return false
	case req.State == subjects.Waited && t.waiting(l) == 0:
		return false
	case req.OlderThan > 0:
		return l.hold != 0 && now.Wall-t.holds.at(l.hold).since >= req.OlderThan.Milliseconds()
	}
	return true
}

func sizeOf(rec *subjects.Record) int {
	n := 64 + len(rec.Name)
	for i := range rec.Holders {
		h := &rec.Holders[i]
		n += 192 + len(h.Holder) + len(h.User) + len(h.Data)
	}
	for i := range rec.Queue {
		w := &rec.Queue[i]
		n += 128 + len(w.Holder) + len(w.User)
	}
	return n
}
