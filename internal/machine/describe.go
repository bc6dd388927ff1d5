package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Describe draws what is under way and what is held, for people.
func (m *Machine) Describe(now int64) string {
	var b strings.Builder
	s := &m.session
	fmt.Fprintf(&b, "connected %t, session %s incarnation %d lease %v, %d acquiring, %d leased", m.connected,
		[...]string{"none", "opening", "reopening", "open"}[s.phase], s.incarnation, time.Duration(s.lease), s.acquiring, s.leased)
	for _, l := range []*callList{&m.others, &s.flight} {
		for c := l.head; c != nil; c = c.next {
			fmt.Fprintf(&b, "\n  %s %q number %d bucket %d %s", c.Req.Op, c.Req.Name, c.Req.Number, c.bucket, c.state)
			if c.due != Never {
				fmt.Fprintf(&b, ", again in %v", time.Duration(c.due-now))
			}
			if why := c.Why(); why != nil {
				fmt.Fprintf(&b, ", after %v", why)
			}
		}
	}
	for _, h := range append(slices.Clone(m.holds), m.ghosts...) {
		fmt.Fprintf(&b, "\n  hold of %q token %d %s, left %v", h.Grant.Name, h.Grant.Token, h.State(now), h.Left(now))
	}
	return b.String()
}

// String is the state's word.
func (s callState) String() string {
	return [...]string{"parked", "gated", "flying", "pausing", "proving", "finished"}[s]
}
