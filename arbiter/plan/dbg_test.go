package plan

import "fmt"

func (s *sim) dump(b uint32) string {
	out := ""
	for _, n := range s.nodes {
		c := n.copies[b]
		out += fmt.Sprintf("\nnode %d up %v cut %v leaving %v until %d under %d applied %d: member %v sealed %d epoch %d led %d len %d pending %v; sight %+v life %d", n.number, n.up, n.cut, n.leaving, n.until/ms, n.under, n.applied, c.member, c.sealed, c.epoch, c.led, len(c.log), c.pending, s.planner.sights[n.number], s.state().Node(n.number).Life)
	}
	if k := s.planner.takes[b]; k != nil {
		out += fmt.Sprintf("\ntake %+v", *k)
	}
	return out + fmt.Sprintf("\nnow %d takefrom %d barred %v", s.now/ms, s.takeFrom/ms, s.barred)
}
