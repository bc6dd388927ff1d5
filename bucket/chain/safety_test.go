package chain

import "testing"

// Between two views that do not follow each other somebody else may have been primary: that is another life.
func TestAGapInTheViewsEndsALife(t *testing.T) {
	for epoch, promoted := range map[uint64]uint64{2: 0, 3: 3} {
		c := newCluster(Config{Bucket: 7, Limits: small}, 2)
		c.plane.commit(View{Epoch: 1, Chain: []Member{one, two}, InSync: 2})
		c.settle(20)
		p := c.node(1).r
		if err := p.Install(View{Epoch: epoch, Chain: []Member{one, two}, InSync: 2}); err != nil {
			t.Fatal(err)
		}
		if out := p.Ready(c.now); out.Promoted != promoted {
			t.Errorf("after a view of epoch %d promoted %d, want %d", epoch, out.Promoted, promoted)
		}
	}
}

// A change that is sound in itself but is not the one that was there in this epoch shows that somebody is damaged. It is
// asked for once more, and when it comes again the copy stops; what it had stays.
func TestAnotherChangeInTheSamePlace(t *testing.T) {
	c := newCluster(Config{Bucket: 7, Limits: small}, 2)
	c.plane.commit(View{Epoch: 1, Chain: []Member{one, two}, InSync: 2})
	c.settle(20)
	nd := c.node(2)
	prev, _ := nd.r.log.at(0)
	was := nd.r.log.last()
	forged := Change{Epoch: 1, Seq: 1, Prev: prev.Hash, Data: []byte("another")}
	forged.Hash = chainHash(forged.Prev, forged.Epoch, forged.Seq, forged.Data)
	m := Message{Kind: Append, Bucket: 7, Epoch: 1, From: one, To: two, Prev: prev, Changes: []Change{forged}, Confirmed: 1, Head: 1}
	for _, again := range []uint64{0, 0, 1} {
		if nd.r.Status().Stopped != "" {
			t.Fatal("it stops before it was told a second time")
		}
		m.Again = again
		if err := nd.r.Receive(1, m); err != nil {
			t.Fatal(err)
		}
		if again == 0 {
			c.ready(nd, false)
		}
	}
	out := c.ready(nd, false)
	if s := nd.r.Status(); s.Stopped == "" || s.Last != was || len(out.Alerts) != 1 {
		t.Errorf("%s, alerts %v", nd.r.Describe(), out.Alerts)
	}
}

// Whoever has confirmed anything under a view may be counted in the next one, which may be committed already. So it throws
// nothing away before a view without it, whether it leaves, or was restarted, or finds itself damaged; and it gets one.
func TestNothingIsThrownAwayWhileItMayCount(t *testing.T) {
	for name, do := range map[string]func(*cluster, *node){
		"leaves": func(_ *cluster, nd *node) { _ = nd.r.Leave() },
		"restarts and leaves": func(c *cluster, nd *node) {
			c.crash(nd)
			c.restart(nd)
			c.apply(nd)
			_ = nd.r.Leave()
		},
		"leaves before it knows a view": func(c *cluster, nd *node) {
			c.crash(nd)
			c.restart(nd)
			_ = nd.r.Leave()
			c.apply(nd)
		},
		"damaged": func(c *cluster, nd *node) { nd.r.stop(1, "it is damaged") },
	} {
		c := newCluster(Config{Bucket: 7, Limits: small}, 3)
		c.plane.commit(View{Epoch: 1, Chain: []Member{one, two}, InSync: 2})
		for len(c.plane.views) == 1 {
			c.settle(1) // until 3 is in the next view, which it has not heard of
		}
		nd := c.node(3)
		if nd.views != 1 || !nd.r.shown {
			t.Fatalf("%s: %s", name, nd.r.Describe())
		}
		do(c, nd)
		if out := c.ready(nd, false); out.Discard {
			t.Errorf("%s: it throws away what counts in %v", name, c.plane.view())
		}
		// That view is taken back as if it had never been: 3 waits for another one, and asks for it.
		c.plane.views, c.plane.proposals = c.plane.views[:1], nil
		c.node(1).r.Refused(2)
		c.node(1).r.lead.peers = nil
		c.node(1).r.lead.follow(c.node(1).r)
		c.settle(20)
		if nd.r.Self() != (Member{3, 2}) {
			t.Errorf("%s: it has not begun anew:\n%s", name, c)
		}
		if len(c.check.wrong) > 0 {
			t.Errorf("%s: %v", name, c.check.wrong)
		}
	}
}

// A snapshot that does not have all that a member of the in-sync set has is none for it: it asks to be dropped. So does one
// that does not count, and was restarted after it may have confirmed what it has.
func TestASnapshotOfLess(t *testing.T) {
	c := newCluster(Config{Bucket: 7, Limits: small}, 3)
	c.plane.commit(View{Epoch: 1, Chain: []Member{one, two, three}, InSync: 2})
	c.settle(20)
	for _, nd := range c.nodes[1:] {
		c.crash(nd)
		c.restart(nd)
		c.apply(nd)
		was, from := nd.r.log.last(), c.node(nd.id-1).cfg.Self
		m := Message{Kind: Chunk, Bucket: 7, Epoch: 1, From: from, To: nd.r.Self(), Base: Point{Epoch: 1, Seq: 1, Hash: 5}}
		if err := nd.r.Receive(from.Node, m); err != nil {
			t.Fatal(err)
		}
		out := c.ready(nd, false)
		if s := nd.r.Status(); s.Stopped == "" || s.Last != was || out.Restore != nil || out.Discard {
			t.Errorf("%s", nd.r.Describe())
		}
	}
}

// An acknowledgement of another life of the node below is not one of the member that is there.
func TestAnAckOfAnotherLife(t *testing.T) {
	c := newCluster(Config{Bucket: 7, Limits: small}, 2)
	c.plane.commit(View{Epoch: 1, Chain: []Member{one, two}, InSync: 2})
	c.settle(20)
	p := c.node(1)
	if err := c.propose(p, "only here"); err != nil {
		t.Fatal(err)
	}
	c.ready(p, false)
	for _, list := range [][]Progress{{{two, 2}}, {{Member{2, 2}, 2}, {two, 2}}, {{two, 3}}, nil} {
		m := Message{Kind: Ack, Bucket: 7, Epoch: 1, From: Member{2, 2}, To: one, Progress: list}
		if err := p.r.Receive(2, m); err != nil {
			t.Fatal(err)
		}
	}
	m := Message{Kind: Ack, Bucket: 7, Epoch: 1, From: two, To: one, Progress: []Progress{{two, 1}, {Member{2, 2}, 2}}}
	if err := p.r.Receive(2, m); err != nil {
		t.Fatal(err)
	}
	if out := c.ready(p, false); out.Confirmed != 1 || p.r.down.acked != 1 {
		t.Errorf("confirmed %d: %s", out.Confirmed, p.r.Describe())
	}
}

// Every input makes Next say now, and Ready ends that. A lease that only goes on is no input.
func TestNext(t *testing.T) {
	c := newCluster(Config{Bucket: 7, Limits: small}, 3)
	c.plane.commit(View{Epoch: 1, Chain: []Member{one, two, three}, InSync: 2})
	c.settle(20)
	p := c.node(1).r
	for _, input := range []struct {
		name string
		do   func()
	}{
		{"propose", func() { _ = c.propose(c.node(1), "x") }},
		{"receive", func() { _ = p.Receive(2, Message{Kind: Ask, Bucket: 7, Epoch: 1, From: two, To: one}) }},
		{"score", func() { p.Score(3, 1) }},
		{"away", func() { p.Away(3, true) }},
		{"refused", func() {
			p.proposal = &View{Epoch: 2}
			p.Refused(2)
		}},
		{"handover", func() { _ = p.HandOver(two) }},
		{"a lease again", func() {
			p.Grant(Lease{})
			p.Ready(c.now)
			p.Grant(Lease{Until: c.now + second})
		}},
		{"a lease is applied", func() {
			p.Grant(Lease{Until: c.now + second, Under: 100})
			p.Ready(c.now)
			p.Applied(100)
		}},
		{"join", p.Join},
		{"seal", func() { p.Seal(0) }},
		{"install", func() { _ = p.Install(View{Epoch: 2, Chain: []Member{one}, InSync: 1}) }},
	} {
		p.proposal = nil // as good as refused
		p.Ready(c.now)
		if at := p.Next(c.now); at <= c.now {
			t.Errorf("before %s: %d", input.name, at-c.now)
		}
		input.do()
		if at := p.Next(c.now); at != c.now {
			t.Errorf("after %s: %d", input.name, at-c.now)
		}
	}
	p.Ready(c.now)
	p.Grant(Lease{Until: c.now + 2*second})
	if at := p.Next(c.now); at <= c.now {
		t.Errorf("after a lease that goes on: %d", at-c.now)
	}
}

// A change that is sound in itself but does not follow the one that it is sent after is not taken.
func TestAChangeThatFollowsAnother(t *testing.T) {
	c := newCluster(Config{Bucket: 7, Limits: small}, 2)
	c.plane.commit(View{Epoch: 1, Chain: []Member{one, two}, InSync: 2})
	c.settle(20)
	nd := c.node(2)
	was := nd.r.log.last()
	ch := Change{Epoch: 1, Seq: was.Seq + 1, Prev: 5}
	ch.Hash = chainHash(ch.Prev, ch.Epoch, ch.Seq, nil)
	m := Message{Kind: Append, Bucket: 7, Epoch: 1, From: one, To: two, Prev: was, Changes: []Change{ch}}
	if err := nd.r.Receive(1, m); err != nil {
		t.Fatal(err)
	}
	if c.ready(nd, false); nd.r.log.last() != was {
		t.Errorf("%s", nd.r.Describe())
	}
}

// A copy keeps none of the bytes that a message came in: they may be parts of something large, or be used again.
func TestNothingOfAMessageIsKept(t *testing.T) {
	c := newCluster(Config{Bucket: 7, Limits: small}, 2)
	c.plane.commit(View{Epoch: 1, Chain: []Member{one, two}, InSync: 2})
	c.settle(20)
	for _, text := range []string{"first", "", "second"} {
		if err := c.propose(c.node(1), text); err != nil {
			t.Fatal(err)
		}
	}
	c.ready(c.node(1), false)
	raw := c.flying[0].raw
	c.deliver(0)
	clear(raw)
	changes := c.node(2).r.log.changes
	for i := range changes {
		if !changes[i].intact() {
			t.Errorf("change %d has become %q", changes[i].Seq, changes[i].Data)
		}
	}
	if n := len(changes); n < 4 {
		t.Errorf("%d changes", n)
	}
}

// A neighbour that is far away, farther than Limits.Resend, is not sent everything again and again once that is known.
func TestTheWayIsLearnt(t *testing.T) {
	const step = 5e6 // nanoseconds
	way := int64(50e6)
	c := newCluster(Config{Bucket: 7}, 2)
	c.plane.commit(View{Epoch: 1, Chain: []Member{one, two}, InSync: 2})
	type letter struct {
		packet
		at int64
	}
	var mail []letter
	sent := map[uint64]int{} // how often each change was sent
	c.damage = func(m *Message) {
		for i := range m.Changes {
			sent[m.Changes[i].Seq]++
		}
	}
	for range int(20 * second / step) {
		c.now += step
		if c.now > 12*second {
			way = step // and near again
		}
		for _, nd := range c.nodes {
			c.grant(nd)
			c.apply(nd)
			nd.r.Tick(c.now)
		}
		if c.now%(50*step) == 0 {
			_ = c.propose(c.node(1), "x") // it may not be the acting primary yet
		}
		for len(mail) > 0 && mail[0].at <= c.now {
			c.flying = append(c.flying, mail[0].packet)
			mail = mail[1:]
		}
		for len(c.flying) > 0 {
			c.deliver(0)
		}
		for _, nd := range c.nodes {
			c.ready(nd, false)
		}
		for _, p := range c.flying {
			mail = append(mail, letter{p, c.now + way})
		}
		c.flying = nil
	}
	for seq := uint64(10); seq < 30; seq++ {
		if sent[seq] != 1 {
			t.Errorf("change %d was sent %d times", seq, sent[seq])
		}
	}
	if p := c.node(1).r; p.patience(p.down) != p.lim.Resend {
		t.Errorf("it does not learn that the way is short: %d ms", p.patience(p.down)/1e6)
	}
	if v := c.plane.view(); v.Epoch != 1 || len(c.check.wrong) > 0 {
		t.Errorf("%v, %v", v, c.check.wrong)
	}
}

// A view that was asked for and got lost on its way is asked for again, until it is known what became of it.
func TestALostQuestionIsAskedAgain(t *testing.T) {
	c := newCluster(Config{Bucket: 7, Limits: small}, 3)
	c.plane.commit(View{Epoch: 1, Chain: []Member{one, two, three}, InSync: 2})
	c.settle(20)
	p, asked := c.node(1), int64(0)
	p.r.Away(3, true)
	for i := range 3 {
		out := c.ready(p, false)
		if out.Propose == nil || len(out.Propose.Chain) != 2 {
			t.Fatalf("question %d: %v", i, out.Propose)
		}
		at := p.r.Next(c.now)
		if at != c.now+small.Resend {
			t.Fatalf("it asks again in %d ms", (at-c.now)/1e6)
		}
		c.now = at
		p.r.Tick(c.now)
	}
	// The question that Tick has just prepared must not go out after it was refused: an answer needs only the old set now.
	// Nor is the same asked at once again.
	p.r.Refused(2)
	for {
		if out := c.ready(p, false); out.Propose != nil {
			break
		}
		at := p.r.Next(c.now)
		if at == Never {
			t.Fatal("it gives up")
		}
		c.grant(p)
		asked += at - c.now
		c.now = at
		p.r.Tick(c.now)
	}
	if asked < small.Drop/4 {
		t.Errorf("it asks again %d ms after it was refused", asked/1e6)
	}
	p.r.Refused(2)
	p.r.Away(3, false)
	if out := c.ready(p, false); out.Propose != nil {
		t.Errorf("there is nothing to ask for: %v\n%s", out.Propose, c)
	}
}
