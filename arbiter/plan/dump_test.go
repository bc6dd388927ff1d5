package plan

import "fmt"

// dump is for a failing test.
func (s *sim) dump(b uint32) string {
	out := fmt.Sprintf("\nacks %v now %d take from %d barred %v\nbucket %d: %v", s.rule, s.now/ms, s.takeFrom/ms, s.barred, b, s.state().Views[b])
	for _, n := range s.nodes {
		c := n.copies[b]
		out += fmt.Sprintf("\nnode %d up %v cut %v leaving %v until %d under %d applied %d: member %v sealed %d epoch %d led %d changes %d pending %v hand %v; seen %+v",
			n.number, n.up, n.cut, n.leaving, n.until/ms, n.under, n.applied, c.member, c.sealed, c.epoch, c.led, len(c.log), c.pending, c.hand, s.planner.sights[n.number])
	}
	if k := s.planner.takes[b]; k != nil {
		out += fmt.Sprintf("\ntake %+v", *k)
	}
	if m := s.planner.moves[b]; m != nil {
		out += fmt.Sprintf("\nmove %+v", *m)
	}
	return out + fmt.Sprintf("\nfailed %+v", s.planner.failed[b])
}
