package edge

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/opencluster/oclocks/subjects"
)

// Whatever each bucket gives in a page, following `next` shows every name once, in order.
func TestPagesShowEveryNameOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const buckets = 4
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-c]{1,4}`), 0, 30, rapid.ID[string]).Draw(t, "names")
		slices.Sort(names)
		limit := rapid.IntRange(1, 7).Draw(t, "limit")
		scan := rapid.IntRange(1, 5).Draw(t, "scan")
		var seen []string
		after := ""
		for page := 0; ; page++ {
			if page > 2*len(names)+2 {
				t.Fatalf("no end after %d pages", page)
			}
			merge := PageMerge{Limit: limit}
			for b := range buckets {
				recs, through, done := bucketPage(names, b, buckets, after, min(scan, limit))
				merge.Add(recs, through, done)
			}
			got := merge.Page()
			if len(got.Locks) > limit {
				t.Fatalf("%d records, limit %d", len(got.Locks), limit)
			}
			for _, r := range got.Locks {
				seen = append(seen, r.Name)
			}
			if got.Next == "" {
				break
			}
			var refusal *subjects.Refusal
			if after, refusal = ReadPageMark(got.Next); refusal != nil {
				t.Fatal(refusal)
			}
		}
		if !slices.Equal(seen, names) {
			t.Fatalf("pages show %v, the names are %v", seen, names)
		}
	})
}

// bucketPage is what one bucket of a naive table says: it scans a few names after the mark, and lists those.
func bucketPage(names []string, b, buckets int, after string, scan int) (recs []subjects.Record, through string, done bool) {
	for i, name := range names {
		if i%buckets != b || name <= after {
			continue
		}
		if scan == 0 {
			return recs, through, false
		}
		scan--
		recs, through = append(recs, subjects.Record{Name: name}), name
	}
	return recs, through, true
}

func TestPageMarkRefusesWhatItDidNotMake(t *testing.T) {
	for _, mark := range []string{"!", "a b", "=", fmt.Sprintf("%06000d", 0)} {
		if _, refusal := ReadPageMark(mark); refusal == nil || refusal.Field != "after" {
			t.Errorf("%.20q: refusal %v", mark, refusal)
		}
	}
}

// A page that is too large for a message is cut, and the next one goes on where it ends.
func TestPageFitsIntoAMessage(t *testing.T) {
	page := &subjects.Page{}
	for i := range 200 {
		rec := subjects.Record{Name: fmt.Sprintf("n%03d", i), Held: true, Holders: []subjects.Holder{{Holder: strings.Repeat("x", i)}}}
		page.Locks = append(page.Locks, rec)
	}
	const limit = 8 << 10
	body := Fit(page, nil, limit)
	if len(body) > limit || len(page.Locks) == 0 {
		t.Fatalf("%d records in %d bytes", len(page.Locks), len(body))
	}
	if name, refusal := ReadPageMark(page.Next); refusal != nil || name != page.Locks[len(page.Locks)-1].Name {
		t.Errorf("goes on after %q", name)
	}
	if Fit(page, nil, 1); len(page.Locks) != 1 {
		t.Errorf("%d records where not even one fits", len(page.Locks))
	}
}
