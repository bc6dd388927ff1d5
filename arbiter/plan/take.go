package plan

import (
	"cmp"
	"maps"
	"slices"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

// take is a bucket that is to get its next view from the planner.
type take struct {
	epoch   uint64 // the view that is followed
	reports []told

	owed    int64 // copies are sealed, and if nobody else brings the next view until then, it is owed
	sealing bool  // copies were asked to seal for the next view
	since   int64 // since then
	orders  []order

	enough   int64 // since when the reports are enough for a takeover; 0 if they are not
	hopeless int64 // since when they can never be; 0 if they can
	next     chain.View
	held     []chain.Member // who must not act any more before next is committed
	proposed int64          // when next was proposed last; 0 if it was not
}

// told is what a sealed copy reported, and when it did.
type told struct {
	chain.Report
	at int64
}

// order is when a node was asked last.
type order struct {
	node uint64
	at   int64
}

// seals is how many of an in-sync set of n members a takeover needs.
func seals(rule chain.Acks, n int) int {
	if rule == chain.Majority {
		return n - n/2
	}
	return 1
}

// hear notes what sealed copies told.
func (t *turn) hear(reports []BucketReport) {
	for _, r := range reports {
		if r.Bucket >= t.State.Buckets() || r.Report.Member.Node == 0 {
			continue
		}
		v := &t.State.Views[r.Bucket]
		k := t.takes[r.Bucket]
		if r.Report.Member == v.Primary() && int(r.Bucket) < len(t.asked) {
			t.asked[r.Bucket].told = t.Now
		}
		if p := v.Primary(); v.Epoch > 0 && r.Report.Member.Node == p.Node && r.Report.Member.Inc > p.Inc && t.State.Lives(p) {
			// The primary does not exist any more, though its node lives: its copy has begun anew, or missed a doubling.
			if k == nil {
				k = &take{epoch: v.Epoch, owed: Never}
				t.takes[r.Bucket] = k
			}
			k.owed = min(k.owed, t.Now)
		}
		if r.Report.Epoch < v.Epoch || v.Epoch == 0 {
			continue // not sealed, or about what is over
		}
		if slices.ContainsFunc(v.Chain, func(m chain.Member) bool { return m.Node == r.Report.Member.Node && m.Inc > r.Report.Member.Inc }) {
			continue // of a copy that was before the one in the chain
		}
		if k == nil {
			k = &take{epoch: v.Epoch, owed: Never}
		}
		switch {
		case v.Place(r.Report.Member) < 0 && len(k.reports) == 0 && !k.sealing && !t.alive(v.Primary()):
			continue // it hinders nobody: there is none whom it could join
		case r.Report.Member != v.Primary():
			k.owed = min(k.owed, t.Now+t.cfg.Stuck)
		case r.Report.Failed:
			k.owed = t.Now
		default:
			k.owed = min(k.owed, t.Now+t.cfg.Grace)
		}
		t.takes[r.Bucket] = k
		k.reports = slices.DeleteFunc(k.reports, func(o told) bool { return o.Member.Node == r.Report.Member.Node })
		k.reports = append(k.reports, told{r.Report, t.Now})
	}
}

// take looks after every bucket that has no view, whose primary may be lost, or that is owed a view.
func (t *turn) take() {
	t.scan()
	for _, b := range slices.Sorted(maps.Keys(t.takes)) {
		t.refresh(b)
	}
	buckets := slices.AppendSeq(slices.Clone(t.trouble), maps.Keys(t.takes)) // order: sorted on the next line
	slices.Sort(buckets)
	var first []uint32
	for _, b := range slices.Compact(buckets) {
		if t.State.Views[b].Epoch == 0 {
			first = append(first, b)
			continue
		}
		t.follow(b)
	}
	t.begin(first)
}

// scan finds the buckets in trouble, if anything could have changed them.
func (t *turn) scan() {
	var lapsed uint64 = 1
	for _, s := range t.order {
		lapsed *= 31
		if t.over(s) {
			lapsed += s.number
		}
	}
	lapsed = lapsed<<1 | b2u(t.Now >= t.TakeFrom)
	if t.scanned == t.State && t.scannedBy == lapsed {
		return
	}
	t.Planner.scanned, t.Planner.scannedBy, t.Planner.trouble = t.State, lapsed, nil
	for b := range t.State.Views {
		v := &t.State.Views[b]
		m := v.Primary()
		if s := t.seats[m.Node]; v.Epoch == 0 || s == nil || t.over(s) || !t.State.Lives(m) {
			t.trouble = append(t.trouble, uint32(b))
		}
	}
}

func b2u(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// refresh forgets what was about a view that has been followed. A report about the newest one stays.
func (t *turn) refresh(b uint32) {
	k := t.takes[b]
	v := &t.State.Views[b]
	if k.epoch == v.Epoch {
		return
	}
	delete(t.takes, b)
	left := slices.DeleteFunc(k.reports, func(r told) bool { return r.Epoch < v.Epoch || v.Place(r.Member) < 0 })
	if len(left) > 0 {
		t.takes[b] = &take{epoch: v.Epoch, reports: left, owed: t.Now + t.cfg.Grace}
	}
}

// follow does the next step towards the bucket's next view, if it is to have one.
func (t *turn) follow(b uint32) {
	v := &t.State.Views[b]
	k := t.takes[b]
	if k == nil || !k.sealing {
		if !t.due(k, v) {
			return
		}
		if k == nil {
			k = &take{epoch: v.Epoch, owed: Never}
			t.takes[b] = k
		}
		k.sealing, k.since = true, t.Now
	}
	if k.proposed != 0 && t.State.Lives(k.next.Primary()) {
		// It may be committed at any time, whatever is known now; so it is asked for until it is, and who has to stay silent
		// for it does. Nothing else can be right before: what follows this view is another matter.
		t.stopped(k, k.held)
		t.propose(b, k, k.next)
		return
	}
	k.proposed = 0
	t.decide(b, k, v)
	if k.proposed == 0 {
		t.seal(b, k, v)
	}
}

// due says whether it is time to seal copies for the bucket's next view.
func (t *turn) due(k *take, v *chain.View) bool {
	if k != nil && !t.wait(k.owed) {
		return true
	}
	if lapsed, _ := t.lapsed(v.Primary()); !lapsed {
		return false
	}
	alive := 0
	for _, m := range v.Members() {
		if t.alive(m) {
			alive++
		}
	}
	if alive >= seals(t.rule, v.InSync) {
		return true
	}
	// Whoever is left of the in-sync set and alive is sealed as well: what it has may be the best there is.
	open := slices.ContainsFunc(v.Members(), func(m chain.Member) bool {
		silent, _ := t.silent(k, m)
		return !silent && !t.alive(m)
	})
	return t.givenUp(k, v) && !open
}

// givenUp says whether so few of the in-sync set can still report that it will never be enough.
func (t *turn) givenUp(k *take, v *chain.View) bool {
	left := 0
	for _, m := range v.Members() {
		if !t.gone(k, m) {
			left++
		}
	}
	return left < seals(t.rule, v.InSync)
}

// gone says whether no report of the member will ever be of use: it does not exist, has failed, or its node is lost. A report is a
// sign of life like a lease, and good only as long as the node is alive.
func (t *turn) gone(k *take, m chain.Member) bool {
	if !t.State.Lives(m) {
		return true
	}
	s := t.seats[m.Node]
	if r := k.of(m.Node); r != nil {
		if r.Failed || r.Member != m && r.Member.Inc > m.Inc {
			return true
		}
		if s.alive || t.wait(r.at+int64(t.State.Settings.GiveUp)) {
			return false
		}
	}
	return !s.alive && t.Now >= t.lost(s)
}

// idle says whether no member of the in-sync set can act under a lease.
func (t *turn) idle(k *take, v *chain.View) bool {
	idle := true
	for _, m := range v.Members() {
		silent, _ := t.silent(k, m)
		idle = idle && silent
	}
	return idle
}

// silent says whether the member answers nothing now, and whether it never will under its view: it has sealed itself, or its
// node has no lease.
func (t *turn) silent(k *take, m chain.Member) (silent, final bool) {
	if t.State.Lives(m) && k.of(m.Node) != nil {
		return true, true
	}
	return t.lapsed(m)
}

// of is what the node reported, nil if it did not.
func (k *take) of(node uint64) *told {
	if k == nil {
		return nil
	}
	i := slices.IndexFunc(k.reports, func(r told) bool { return r.Member.Node == node })
	if i < 0 {
		return nil
	}
	return &k.reports[i]
}

// decide proposes the next view if that may be done.
func (t *turn) decide(b uint32, k *take, v *chain.View) {
	var usable []chain.Report
	for _, r := range k.reports {
		if t.alive(r.Member) {
			usable = append(usable, r.Report)
		}
	}
	slices.SortFunc(usable, func(a, b chain.Report) int { return cmp.Compare(a.Member.Node, b.Member.Node) })
	next, err := chain.Takeover(*v, t.rule, usable)
	held := []chain.Member{v.Primary()}
	switch {
	case err == nil:
		k.hopeless = 0
		if k.enough == 0 {
			k.enough = t.Now
		}
		if t.missing(k, v.Chain) && t.wait(k.enough+t.cfg.Linger) {
			t.stopped(k, held)
			return
		}
	case t.givenUp(k, v) && t.idle(k, v):
		k.enough = 0
		if k.hopeless == 0 {
			k.hopeless = t.Now
		}
		if t.missing(k, t.everybody()) && t.wait(k.hopeless+t.cfg.Gather) {
			return
		}
		if next, err = chain.Recover(*v, usable); err != nil {
			return
		}
		held = v.Members()
	default:
		k.enough, k.hopeless = 0, 0
		if lapsed, _ := t.lapsed(v.Primary()); lapsed && t.Now-k.since < 5*t.cfg.Repeat {
			t.hold(v.Primary())
		}
		return
	}
	if !t.stopped(k, held) {
		return
	}
	k.held = held
	t.propose(b, k, next)
}

// wait says whether it is before that time.
func (t *turn) wait(until int64) bool {
	t.wake1(until)
	return t.Now < until
}

// missing says whether one of the members is alive and has not reported yet.
func (t *turn) missing(k *take, members []chain.Member) bool {
	return slices.ContainsFunc(members, func(m chain.Member) bool { return t.alive(m) && k.of(m.Node) == nil })
}

// everybody is one copy of each node that can have one.
func (t *turn) everybody() []chain.Member {
	var list []chain.Member
	for _, s := range t.order {
		if s.node != nil && !s.node.Arbiter {
			list = append(list, s.node.Member())
		}
	}
	return list
}

// stopped makes sure that none of these can act any more, however late: it has sealed itself, or has no lease and gets none.
func (t *turn) stopped(k *take, members []chain.Member) bool {
	stopped := true
	for _, m := range members {
		silent, final := t.silent(k, m)
		if silent && k.of(m.Node) == nil {
			t.hold(m)
		}
		stopped = stopped && silent && final
	}
	return stopped
}

// hold keeps a node from getting a lease, if it could get one for this member.
func (t *turn) hold(m chain.Member) {
	if t.State.Lives(m) {
		t.bar[m.Node] = true
		if !t.seats[m.Node].barred {
			t.wake(t.Now + 1e6)
		}
	}
}

// propose asks for the next view, and again as long as it does not come.
func (t *turn) propose(b uint32, k *take, next chain.View) {
	if k.proposed != 0 && t.Now < k.proposed+t.cfg.Repeat {
		t.wake(k.proposed + t.cfg.Repeat)
		return
	}
	if t.full(len(t.out.Views)) {
		return
	}
	k.next, k.proposed = next.Clone(), t.Now
	t.out.Views = append(t.out.Views, shared.BucketView{Bucket: b, View: next})
	t.wake(t.Now + t.cfg.Repeat)
}

// seal asks the copies that have not reported.
func (t *turn) seal(b uint32, k *take, v *chain.View) {
	for _, m := range v.Chain {
		if t.State.Lives(m) {
			t.ask(b, k, m.Node, v.Epoch)
		}
	}
	if k.hopeless == 0 && !t.givenUp(k, v) {
		return
	}
	for _, m := range t.everybody() {
		t.ask(b, k, m.Node, v.Epoch)
	}
}

func (t *turn) ask(b uint32, k *take, node, epoch uint64) {
	if k.of(node) != nil || !t.reachable(node) || t.full(len(t.out.Seal)) {
		return
	}
	i := slices.IndexFunc(k.orders, func(o order) bool { return o.node == node })
	if i < 0 {
		k.orders = append(k.orders, order{node: node})
		i = len(k.orders) - 1
	} else if due := k.orders[i].at + t.cfg.Repeat; t.Now < due {
		t.wake(due)
		return
	}
	k.orders[i].at = t.Now
	t.out.Seal = append(t.out.Seal, SealOrder{Node: node, Bucket: b, Epoch: epoch})
	t.wake(t.Now + t.cfg.Repeat)
}
