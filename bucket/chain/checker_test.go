package chain

import "fmt"

// checker knows nothing but what must never happen.
type checker struct {
	answered []string           // by sequence number, from 1
	ever     map[string]bool    // all that was ever answered, be it given up by a recovery afterwards
	epochs   map[uint64]Member  // who has confirmed anything in an epoch
	promoted map[uint64]Member  // who has taken over in an epoch
	newest   uint64             // newest epoch in which anybody acted
	had      map[had]bool       // what a member's journal ever had
	lives    map[*lead][]string // what a primary's life has made the history, from the first change on
	led      map[uint64]*lead   // which life an epoch belongs to
	lost     map[Member]bool    // lost its journal, or a part of it
	clocks   bool               // a clock is wrong: nothing is promised about what an old primary says that needs nobody else
	wrong    []string
}

type had struct {
	member Member
	at     int
	text   string
}

func newChecker() checker {
	return checker{epochs: map[uint64]Member{}, promoted: map[uint64]Member{}, ever: map[string]bool{}, had: map[had]bool{},
		lives: map[*lead][]string{}, led: map[uint64]*lead{}, lost: map[Member]bool{}}
}

func (k *checker) fail(format string, args ...any) {
	k.wrong = append(k.wrong, fmt.Sprintf(format, args...))
}

func (k *checker) output(nd *node, out *Output, known uint64) {
	view := nd.r.View()
	if out.Promoted > 0 && view.Recovery {
		// What the recovery lost is given up: that is what its flag says.
		n := 0
		for n < len(nd.table) && n < len(k.answered) && nd.table[n] == k.answered[n] {
			n++
		}
		k.answered = k.answered[:n]
	}
	if out.Promoted > 0 {
		if was, ok := k.promoted[view.Epoch]; ok {
			k.fail("%v begins in epoch %d, in which %v has begun", nd.r.Self(), view.Epoch, was)
		}
		k.promoted[view.Epoch] = nd.r.Self()
		for i, a := range k.answered {
			if i >= len(nd.table) || nd.table[i] != a {
				k.fail("answered change %d %q is not in what %v has when it takes over in epoch %d", i+1, a, nd.r.Self(), view.Epoch)
				break
			}
		}
	}
	if nd.r.lead == nil {
		k.secondary(nd, out)
		return
	}
	if out.Acting {
		known = 0 // it may tell of everything
		if view.Epoch < k.newest && !k.clocks {
			k.fail("%v acts in epoch %d after somebody acted in %d", nd.r.Self(), view.Epoch, k.newest)
		}
		k.newest = max(k.newest, view.Epoch)
		if was, ok := k.epochs[view.Epoch]; ok && was != nd.r.Self() {
			k.fail("%v and %v act in epoch %d", was, nd.r.Self(), view.Epoch)
		}
		k.epochs[view.Epoch] = nd.r.Self()
	}
	// What a primary has confirmed before it was sealed counts as answered even if nobody was told.
	for seq := known + 1; seq <= out.Confirmed; seq++ {
		got := nd.table[seq-1]
		switch {
		case seq > uint64(len(k.answered)):
			k.answered = append(k.answered, got)
			k.ever[fmt.Sprint(seq, got)] = true
		case k.answered[seq-1] != got:
			k.fail("change %d was answered as %q, and in epoch %d by %v as %q", seq, k.answered[seq-1], view.Epoch, nd.r.Self(), got)
			return
		}
		k.rule(nd, &view, int(seq-1), got)
		if p := nd.r.proposal; p != nil {
			k.rule(nd, p, int(seq-1), got)
		}
	}
}

// secondary: what is delivered to those who were never primary is a beginning of what was answered. One that was primary
// is ahead of it until it has begun anew, and so is one that a recovery left behind.
func (k *checker) secondary(nd *node, out *Output) {
	for _, ch := range out.Deliver {
		if !k.ever[fmt.Sprint(ch.Seq, string(ch.Data))] {
			k.fail("%v delivers change %d %q, which was not answered", nd.r.Self(), ch.Seq, ch.Data)
		}
	}
}

// all: one Ready gives everything, and then Next knows of nothing that is due at once.
func (k *checker) all(nd *node, now int64) {
	if at := nd.r.Next(now); at <= now {
		k.fail("%v is due again right after Ready: %d", nd.r.Self(), at-now)
	}
	more := nd.r.Ready(now)
	if len(more.Messages)+len(more.Append)+len(more.Deliver)+len(more.Alerts) > 0 || more.State != nil || more.Propose != nil ||
		more.Restore != nil || more.Sealed != nil || more.Discard || more.Truncate || more.Demoted || more.Promoted > 0 {
		k.fail("%v has more to do right after Ready: %+v", nd.r.Self(), more)
	}
}

// rule: as many of the view's in-sync set as the rule asks for have had what is answered, as the members that they are.
func (k *checker) rule(nd *node, v *View, at int, text string) {
	have := 0
	for _, m := range v.Members() {
		if k.had[had{m, at, text}] {
			have++
		}
	}
	if need := nd.cfg.Acks.need(v.InSync); have < need {
		k.fail("%v confirms change %d %q, which %d of %v have: %d are needed", nd.r.Self(), at+1, text, have, v, need)
	}
}

// remember notes what a journal has from there on.
func (k *checker) remember(d *disk, from int) {
	for i := from; i < d.length(); i++ {
		k.had[had{d.state.Self, i, d.at(i)}] = true
	}
}

// journaled looks at what a copy has stored, before anything is sent: what it has verified is its primary's history.
func (k *checker) journaled(nd *node, out *Output) {
	d := &nd.disk
	from := d.length() - len(out.Append)
	if out.Restore != nil {
		from = 0
	}
	k.remember(d, from)
	view := &nd.r.view
	if l := nd.r.lead; l != nil {
		k.led[view.Epoch] = l
		for i := len(k.lives[l]); i < d.length(); i++ {
			k.lives[l] = append(k.lives[l], d.at(i))
		}
		return
	}
	if !nd.r.up.matched {
		return
	}
	head := k.lives[k.led[view.Epoch]]
	for i := range int(nd.r.up.verified) {
		if i >= len(head) || i >= d.length() || head[i] != d.at(i) {
			k.fail("%v has verified %d in epoch %d, but its change %d is not the primary's", nd.r.Self(), nd.r.up.verified,
				view.Epoch, i+1)
			return
		}
	}
}

// sealed: who has said that it is sealed neither answers nor confirms, and has exactly what it said that it has.
func (k *checker) sealed(nd *node, out *Output, said Report) {
	if said.Epoch == 0 || nd.r.state.Epoch > said.Epoch {
		return
	}
	if out.Acting || nd.r.log.last() != said.Last {
		k.fail("%v was sealed for epoch %d at %v: acting %v, now at %v", nd.r.Self(), said.Epoch, said.Last, out.Acting,
			nd.r.log.last())
	}
	for _, m := range out.Messages {
		if m.Kind == Append || m.Kind == Ack {
			k.fail("%v was sealed for epoch %d and says %v", nd.r.Self(), said.Epoch, &m)
		}
	}
}

// covered is the claim in doc.go: as many of the newest view's in-sync set as the rule asks for have every answered change.
// Who has lost its journal is a failure that the rule may be made for, so it is taken to have had it.
func (c *cluster) covered() {
	v := c.plane.view()
	if v.Recovery {
		return // it says that this does not hold
	}
	for i, text := range c.check.answered {
		have := 0
		for _, m := range v.Members() {
			d := &c.node(m.Node).disk
			if c.check.lost[m] || d.state.Self == m && i < d.length() && d.at(i) == text {
				have++
			}
		}
		if need := c.cfg.Acks.need(v.InSync); have < need {
			c.check.fail("answered change %d %q is with %d of %v, not with %d", i+1, text, have, v, need)
			return
		}
	}
}
