package edge

import (
	"cmp"
	"encoding/base64"
	"slices"

	"github.com/opencluster/oclocks/subjects"
)

// PageMerge makes one page of a list out of what each bucket gave: records in the order of their names, and the name
// up to which that bucket was searched. The page ends at the lowest name up to which all of them were, or at its limit.
type PageMerge struct {
	Limit   int // records on a page
	recs    []subjects.Record
	through string // lowest name up to which an unfinished bucket was searched
	partial bool   // some bucket was not searched to its end
}

// Add adds what one bucket gave: records in order, and the name up to which it was searched unless it is done.
func (p *PageMerge) Add(recs []subjects.Record, through string, done bool) {
	p.recs = append(p.recs, recs...)
	if done {
		return
	}
	if !p.partial || through < p.through {
		p.partial, p.through = true, through
	}
}

// AddPage adds what was merged elsewhere: a page is as good as what one bucket gives. It must be one of our own.
func (p *PageMerge) AddPage(page *subjects.Page) *subjects.Refusal {
	through, refusal := ReadPageMark(page.Next)
	if refusal == nil {
		p.Add(page.Locks, through, page.Next == "")
	}
	return refusal
}

// Page is the merged page.
func (p *PageMerge) Page() *subjects.Page {
	slices.SortFunc(p.recs, func(a, b subjects.Record) int { return cmp.Compare(a.Name, b.Name) })
	next := ""
	if p.partial {
		end, _ := slices.BinarySearchFunc(p.recs, p.through, func(r subjects.Record, name string) int {
			if r.Name <= name {
				return -1
			}
			return 1
		})
		p.recs, next = p.recs[:end], p.through
	}
	if len(p.recs) > p.Limit {
		p.recs = p.recs[:p.Limit]
		next = p.recs[p.Limit-1].Name
	}
	return &subjects.Page{Locks: p.recs, Next: PageMark(next)}
}

// Fit writes the page into scratch; as much of its beginning as is at most limit bytes, and at least one record. Each
// bucket bounds what it gives, but there are many of them.
func Fit(page *subjects.Page, scratch []byte, limit int) []byte {
	scratch = page.AppendJSON(scratch[:0])
	for len(scratch) > limit && len(page.Locks) > 1 {
		page.Locks = page.Locks[:max(1, min(len(page.Locks)-1, len(page.Locks)*limit/len(scratch)))]
		page.Next = PageMark(page.Locks[len(page.Locks)-1].Name)
		scratch = page.AppendJSON(scratch[:0])
	}
	return scratch
}

// PageMark makes the opaque `next` out of the name after which the next page begins; "" stays "".
func PageMark(name string) string { return base64.RawURLEncoding.EncodeToString([]byte(name)) }

// ReadPageMark is the name in a page mark, or a refusal.
func ReadPageMark(mark string) (string, *subjects.Refusal) {
	name, err := base64.RawURLEncoding.DecodeString(mark)
	if err != nil || len(name) > subjects.MaxName {
		return "", &subjects.Refusal{Code: 400, Reason: subjects.ReasonBadRequest, Field: "after",
			Message: "after: expected the `next` of an earlier page, as it was"}
	}
	return string(name), nil
}
