package cluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func now() time.Time { return at }

// fake is a cluster of two nodes, of which the second does not answer, and some buckets.
type fake struct {
	total uint32
	asked []subjects.Request
	err   error
}

func (f *fake) Cluster(_ context.Context, req *subjects.Request) (*subjects.Cluster, error) {
	f.asked = append(f.asked, *req)
	c := &subjects.Cluster{
		Cluster: "C", Change: 9, Mode: "degraded", Quorum: subjects.ClusterQuorum{Have: 1, Need: 1}, Leader: 1, Total: f.total,
		Nodes: []subjects.ClusterNode{
			{Number: 1, Name: "one", Status: "up", Answered: true, Leader: true, Voter: true, Change: 9, Digest: "0123456789abcdef",
				Lease: "523.1ms", Away: []uint64{2}, Direct: []uint64{}, Primaries: 3, Copies: 4, Degraded: 3, Lag: 5, Location: "eu/fra"},
			{Number: 2, Name: "two", Status: "away"},
		},
		Buckets: []subjects.ClusterBucket{},
	}
	if req.Has&subjects.HasBuckets != 0 {
		for b := req.FirstBucket; b <= req.LastBucket; b++ {
			c.Buckets = append(c.Buckets, subjects.ClusterBucket{Bucket: b, Primary: 1, Epoch: 3, Chain: []uint64{1, 2}, InSync: 1, Acting: true,
				Degraded: true, Confirmed: 7, Copies: []subjects.ClusterCopy{{Node: 1, History: "equal"}, {Node: 2, Lag: 5, History: "behind"}}})
		}
	}
	return c, f.err
}

func gather(t *testing.T, source *fake, text string) *Frame {
	t.Helper()
	b, err := ParseBuckets(text)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Gather(t.Context(), source, b, now)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestLines(t *testing.T) {
	f := gather(t, &fake{total: 4}, "1-2")
	want := `cluster C  degraded  03:04:05
one leads, 1 node up, min_quorum 1, 4 buckets, configuration 9

NODE  NAME  STATUS  LEASE  PRIMARY OF  COPIES  LAG  DIRECT  CONFIGURATION  LOCATION  REMARKS
1     one   up      520ms  3           4       5    0/0     9/012345       eu/fra    does not reach two, 3 without a second copy, leads
2     two   away    -      -           -       -    -       -              -         does not answer

BUCKET  PRIMARY  EPOCH  COPIES  IN SYNC  CONFIRMED  LAG  HISTORY      REMARKS
1       one      3      two     1        7          5    behind: two  without a second copy
2       one      3      two     1        7          5    behind: two  without a second copy`
	if got := strings.Join(f.Lines(0, 0), "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	short := f.Lines(20, 5)
	if len(short) != 5 || len([]rune(short[1])) != 20 {
		t.Errorf("got %q", short)
	}
	if got := f.Lines(0, 0); !strings.Contains(strings.Join(got, "\n"), "520ms") {
		t.Error("drawing changes the frame")
	}
	all := gather(t, &fake{total: 4}, "").Lines(0, 0)
	if last := all[len(all)-1]; last != "All 4 buckets are as they should be." {
		t.Errorf("got %q", last)
	}
	for want, change := range map[string]func(f *Frame){
		"Nobody leads: ": func(f *Frame) { f.Leader = 0 },
		"Nothing new is granted: min_quorum asks for 3 ": func(f *Frame) { f.Quorum.Need = 3 },
	} {
		f := gather(t, &fake{total: 4}, "")
		change(f)
		all := f.Lines(0, 0)
		if last := all[len(all)-1]; !strings.HasPrefix(last, want) {
			t.Errorf("got %q", last)
		}
	}
}

func TestWhatIsWrongIsSaid(t *testing.T) {
	f := &Frame{At: at, Cluster: subjects.Cluster{Total: 1, Nodes: []subjects.ClusterNode{
		{Number: 1, Name: "one", Answered: true, Change: 5, Digest: "aa", Lease: "0s", Refused: "quarantine"},
		{Number: 2, Name: "two", Answered: true, Voter: true, Change: 5, Digest: "bb", Recovery: 2},
	}, Buckets: []subjects.ClusterBucket{
		{Bucket: 0, Problem: "no primary"},
		{Bucket: 1, Primary: 2, Chain: []uint64{2}, Copies: []subjects.ClusterCopy{{Node: 1, History: "differs", Stopped: "its history differs"}}},
	}}}
	got := strings.Join(f.Lines(0, 0), "\n")
	for _, want := range []string{"nobody leads", "no lease: quarantine, its configuration differs, does not vote", "2 in recovery", "none", "no primary",
		"differs: one", "its primary does not act", "copy of node 1 stopped: its history differs"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

// A node that wants no direct links, or does not answer, is missed by nobody.
func TestDirectLinks(t *testing.T) {
	f := &Frame{Cluster: subjects.Cluster{Nodes: []subjects.ClusterNode{
		{Number: 1, Name: "one", Answered: true, Direct: []uint64{2}}, {Number: 2, Name: "two", Answered: true, Direct: []uint64{1, 3}},
		{Number: 3, Name: "three", Answered: true, Direct: []uint64{2}}, {Number: 4, Name: "off", Answered: true}, {Number: 5, Name: "away"},
	}}}
	rows := f.nodes()
	for i, want := range []string{"1/2", "2/2", "1/2", "-", "-"} {
		if got := rows[i+1][7]; got != want {
			t.Errorf("node %d: %s, want %s", i+1, got, want)
		}
	}
	if one, two := strings.Join(rows[1], " "), strings.Join(rows[2], " "); !strings.Contains(one, "no direct link to three") || strings.Contains(two, "no direct link") {
		t.Errorf("%s; %s", one, two)
	}
}

func TestGatherAsksInParts(t *testing.T) {
	const total = 2*subjects.MaxBucketRange + 3
	source := &fake{total: total}
	f := gather(t, source, "all")
	if len(f.Buckets) != total || f.Buckets[total-1].Bucket != total-1 || len(source.asked) != 4 {
		t.Errorf("got %d buckets with %d questions", len(f.Buckets), len(source.asked))
	}
	source = &fake{total: 1, err: errors.New("gone")}
	for _, b := range []Buckets{{}, {All: true}, {Asked: true}} {
		if _, err := Gather(t.Context(), source, b, now); err == nil || !strings.Contains(err.Error(), "gone") {
			t.Errorf("got %v", err)
		}
	}
}

func TestParseBuckets(t *testing.T) {
	for _, bad := range []string{"x", "3-1", "-1", "1-", "70000", "1-2-3"} {
		if _, err := ParseBuckets(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
	if b, err := ParseBuckets("7"); err != nil || b != (Buckets{Asked: true, First: 7, Last: 7}) {
		t.Errorf("got %+v, %v", b, err)
	}
}
