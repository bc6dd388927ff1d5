package plan

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/opencluster/oclocks/bucket/chain"
)

// TestNeverTwoPrimaries drives the planner through whatever can go wrong: nodes that die, come back with and without their
// journals, are cut off, apply late; leaders that change; orders, reports and proposals that come late, twice or never. At no
// time may two nodes be able to act as primary of one bucket, nor a primary lack what was answered. When everything is well
// again, the buckets are spread evenly, and stay where they are.
func TestNeverTwoPrimaries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rule := rapid.SampledFrom([]chain.Acks{chain.First, chain.All, chain.Majority}).Draw(t, "acks")
		nodes := rapid.IntRange(2, 4).Draw(t, "nodes")
		s := newSim(rapid.Uint64().Draw(t, "seed"), nodes, rule)
		for range 30 {
			s.round(100 * ms)
		}
		for range rapid.IntRange(10, 120).Draw(t, "turns") {
			s.disturb(rapid.IntRange(0, 19).Draw(t, "what"), rapid.IntRange(0, nodes-1).Draw(t, "node"))
			s.check()
			if len(s.wrong) > 0 {
				t.Fatal(s.wrong)
			}
		}
		s.heal()
		for range 250 {
			s.round(100 * ms)
		}
		if len(s.wrong) > 0 {
			t.Fatal(s.wrong)
		}
		s.settled(t)
	})
}

// disturb lets one thing happen.
func (s *sim) disturb(what, node int) {
	n := s.nodes[node]
	switch what {
	case 0, 1, 2:
		s.round(int64(10+s.r.IntN(90)) * ms)
	case 3:
		s.now += int64(s.r.IntN(900)) * ms
	case 4:
		s.renew(n)
	case 5:
		s.apply(n, n.applied+1+s.r.IntN(5))
	case 6:
		n.up = false
		for b := range n.copies {
			c := &n.copies[b]
			c.led, c.pending, c.hand = 0, nil, chain.Member{}
		}
	case 7:
		s.start(n, s.r.IntN(3) == 0)
	case 8:
		n.cut = !n.cut
	case 9:
		s.elect()
	case 10:
		s.step()
	case 11:
		if k := len(s.orders); k > 0 {
			i := s.r.IntN(k)
			s.obey(s.orders[i])
			s.orders = slices.Delete(s.orders, i, i+1)
		}
	case 12:
		if k := len(s.proposals); k > 0 {
			i := s.r.IntN(k)
			s.commit(s.proposals[i])
			if s.r.IntN(2) == 0 {
				s.proposals = slices.Delete(s.proposals, i, i+1)
			}
		}
	case 13:
		for b := range simBucket {
			s.write(n, b)
			s.replan(n, b)
		}
	case 14:
		s.orders, s.reports = nil, nil
	case 15:
		n.leaving = !n.leaving
	default:
		s.race(n)
	}
}

// race lets a node come back just when others take over from it, every step at any time.
func (s *sim) race(n *simNode) {
	was := n.cut
	n.cut = true
	for range 8 + s.r.IntN(3) {
		s.now += 100 * ms
		for _, o := range s.nodes {
			s.renew(o)
			if o != n {
				s.apply(o, len(s.states))
			}
		}
	}
	n.cut = was && s.r.IntN(2) == 0
	for range 5 + s.r.IntN(30) {
		switch s.r.IntN(16) {
		case 0:
			s.elect()
		case 1, 2:
			s.renew(n)
		case 3, 4:
			s.apply(n, len(s.states))
		case 5, 6, 7, 8:
			s.step()
		case 9, 10, 11:
			for _, o := range s.orders {
				s.obey(o)
			}
			s.orders = nil
		case 12, 13:
			for _, p := range s.proposals {
				s.commit(p)
			}
			s.proposals = nil
		default:
			for _, o := range s.nodes {
				if o != n {
					s.renew(o)
					s.apply(o, len(s.states))
				}
			}
		}
		s.check()
	}
}

// start brings a node back that is down.
func (s *sim) start(n *simNode, fresh bool) {
	if n.up || s.state().Node(n.number) == nil {
		return
	}
	n.up, n.leaving = true, false
	n.until, n.under = 0, 0
	s.register(n, fresh)
}

func (s *sim) heal() {
	for _, n := range s.nodes {
		s.start(n, false)
		n.cut, n.leaving = false, false
	}
}

// settled looks whether everything is as it should be when nothing is wrong.
func (s *sim) settled(t *rapid.T) {
	loads := map[uint64]int{}
	for b := range simBucket {
		v := &s.state().Views[b]
		n := s.nodes[v.Primary().Node-1]
		if !s.leads(n, b) {
			t.Fatalf("bucket %d: %v: no primary acts%s", b, v, s.dump(uint32(b)))
		}
		if len(v.Chain) != len(s.nodes) {
			t.Fatalf("bucket %d: %v: not on all nodes", b, v)
		}
		loads[n.number]++
	}
	for _, n := range s.nodes {
		low, high := simBucket/len(s.nodes), (simBucket+len(s.nodes)-1)/len(s.nodes)
		if l := loads[n.number]; l < low || l > high {
			all := ""
			for b := range uint32(simBucket) {
				all += s.dump(b)
			}
			t.Fatalf("node %d is primary of %d of %d buckets%s", n.number, l, simBucket, all)
		}
	}
	if s.quiet < 50 {
		t.Fatalf("views still changed %d turns ago", s.quiet)
	}
}
