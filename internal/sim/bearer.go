package sim

import (
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/bucket/replicated"
	"github.com/opencluster/oclocks/conf/shared"
)

// This file checks what a member's name in an in-sync set stands for (bucket/replicated, past.go): its bearer has all that was ever
// confirmed of the bucket, whether clients would notice or not. It is looked at when a copy begins, when a view is committed and when a
// primary may answer for the first time in an epoch. A recovery begins another history.

// lineage is what is known of a bucket's history.
type lineage struct {
	sure    chain.Point // confirmed, as a primary has known
	from    uint64      // epochs before are of another history
	born    uint32      // of the table with which that history began
	origin  chain.Point // where the history begins if it is half of another one; zero: no copy has begun with that yet
	half    bool        // the bucket was made by a doubling
	doubted bool        // the bucket that it was half of may have lost something before it was split
	asked   uint64      // the epoch whose primary was looked at
}

func (k *checker) lineage(b uint32) *lineage {
	for int(b) >= len(k.lines) {
		k.lines = append(k.lines, lineage{})
	}
	return &k.lines[b]
}

// halved begins the history of a bucket that a doubling has made.
func (k *checker) halved(b uint32) {
	from := k.lineage(replicated.ParentOf(b))
	*k.lineage(b) = lineage{half: true, doubted: from.doubted && from.sure.Seq == 0}
}

// recovered begins another history, after a view of epoch from.
func (k *checker) recovered(b uint32, from uint64) {
	*k.lineage(b) = lineage{half: k.lineage(b).half, from: from, doubted: true}
}

// hangs tells that the bucket which this one is half of has begun another history, and may not have been split in the one before.
func (k *checker) hangs(half uint32) {
	if l := k.lineage(half); l.sure.Seq == 0 {
		l.origin, l.doubted = chain.Point{}, true
	}
}

// confirmed looks at what a primary knows to be confirmed, and at what it has if it may answer.
func (k *checker) confirmed(p *process, c *cell, answers bool) {
	r, l := c.Chain(), k.lineage(c.Number())
	epoch := r.Epoch()
	if k.w.mix.wild || epoch == 0 || epoch < l.from || r.Primary() != r.Self() {
		return
	}
	if answers && epoch > l.asked {
		l.asked = epoch
		k.bears(p, c, "is primary")
	}
	if sure := r.Sure(); sure.Seq > l.sure.Seq {
		l.sure, l.born = sure, c.Table().Born()
	}
}

// begun looks at a copy that has just begun.
func (k *checker) begun(p *process, c *cell) {
	if int(c.Number()) < len(k.state.Views) && k.state.Views[c.Number()].Counts(c.Chain().Self()) && k.registered(p, k.state) {
		k.bears(p, c, "begins")
	}
}

// forked notes where the history of a half begins. A bucket that has lost its end may be split once more: the half that has begun is not
// of that history, and whoever has it from there joins.
func (k *checker) forked(p *process, f *replicated.Fork) {
	if f.Start.Table == nil || k.w.mix.wild {
		return
	}
	l := k.lineage(f.Bucket)
	lost := k.lossy[f.Bucket]
	for b := f.Bucket; b > 0; {
		b = replicated.ParentOf(b)
		lost += k.lossy[b]
	}
	switch {
	case l.origin == chain.Point{}:
		l.origin = f.Start.Chain.Base
	case l.origin != f.Start.Chain.Base && lost == 0:
		k.w.fail("%v: bucket %d begins at %v, and began elsewhere at %v", p.m, f.Bucket, f.Start.Chain.Base, l.origin)
	}
}

// counted looks at the copies of which the in-sync set of a new view is made.
func (k *checker) counted(b uint32, v *chain.View, state *shared.State) {
	if k.w.mix.wild || v.Recovery {
		return
	}
	need, lack := v.InSync, 0
	if state.Settings.Acks == chain.Majority {
		need = v.InSync/2 + 1
	}
	said := ""
	for _, m := range v.Members() {
		for _, o := range k.w.machines {
			if o.p == nil || o.p.number != m.Node || !k.registered(o.p, state) || b >= o.p.count {
				continue
			}
			c := o.p.shardOf(b).cell(b)
			if c == nil || c.Chain().Self() != m {
				continue
			}
			if text := k.lacks(c, true); text != "" {
				lack++
				said = text
			}
		}
	}
	if lack > v.InSync-need {
		k.w.fail("bucket %d: %d of the in-sync set of %v lack what was confirmed: %s", b, lack, v, said)
	}
}

// registered says whether a process is the one that is the node.
func (k *checker) registered(p *process, state *shared.State) bool {
	n := state.Node(p.number)
	return n != nil && n.Life == p.life && n.Start == p.start
}

// bears fails the run if a copy has not what it must have.
func (k *checker) bears(p *process, c *cell, does string) {
	if text := k.lacks(c, does != "begins" || p.shared().Settings.Acks != chain.Majority); !k.w.mix.wild && text != "" {
		k.w.fail("%v: bucket %d: %s %s by a name that has what was confirmed, and lacks it: %s", p.m, c.Number(), c.Chain().Self(), does, text)
	}
}

// lacks says what a copy has not; "": it has everything, or nobody can tell. With a majority a member of the set may lack something, but
// not that of which all its history goes out.
func (k *checker) lacks(c *cell, all bool) string {
	r, l := c.Chain(), k.lineage(c.Number())
	want := l.sure
	if want.Seq == 0 && !l.doubted {
		want = l.origin
	}
	has, known := r.Has(want)
	empty, _ := r.Has(chain.Origin(c.Number()))
	switch {
	case r.Status().Stopped != "": // it says so
	case empty && !l.doubted && k.parted(c.Number()):
		return "it has nothing of the bucket that it is half of; " + r.Describe()
	case all && want != (chain.Point{}) && known && !has:
		return want.String() + " is confirmed; " + r.Describe()
	}
	return ""
}

// parted says whether what a bucket begins with must come from another one, which has confirmed something before there was this one.
func (k *checker) parted(b uint32) bool {
	for k.lineage(b).half {
		from := k.lineage(replicated.ParentOf(b))
		switch {
		case from.sure.Seq > 0:
			return from.born > 0 && from.born <= b
		case from.doubted:
			return false
		}
		b = replicated.ParentOf(b)
	}
	return false
}
