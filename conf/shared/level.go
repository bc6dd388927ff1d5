package shared

import "fmt"

// Known is the level of this program: by which it can apply commands, and all levels below. Level 1 is that of the first program. Who
// makes a program that applies anything differently raises it: doc.go, "Programs of different versions".
const Known = 1

// Written is how a level is written in commands and registrations: level 1 not at all, as by programs that had no levels.
func Written(level uint32) uint32 {
	if level == 1 {
		return 0
	}
	return level
}

// needs is the lowest level by which the command means what it says. An operation, a field of one or a setting that came later than level
// 1 is named here.
func (c *Command) needs() uint32 { return 1 }

// AppliedBy is the level by which all nodes apply commands after this change.
func (s *State) AppliedBy() uint32 { return max(1, s.Level) }

// Reaches is the highest level that its program knows.
func (n *Node) Reaches() uint32 { return max(1, n.Level) }

// Raisable is the level to which the leader may raise the cluster's, 0 if there is none: what every node's program knows.
func (s *State) Raisable() uint32 {
	lowest := uint32(0)
	for i := range s.Nodes {
		if l := s.Nodes[i].Reaches(); lowest == 0 || l < lowest {
			lowest = l
		}
	}
	if lowest > s.AppliedBy() {
		return lowest
	}
	return 0
}

func (t *turn) raise(level uint32) error {
	switch most := t.next.Raisable(); {
	case level <= t.next.AppliedBy():
		return fmt.Errorf("%w: it is %d, not below %d", ErrStale, t.next.AppliedBy(), level)
	case level > most:
		return fmt.Errorf("%w: not every node's program knows level %d", ErrLevel, level)
	}
	t.next.Level = level
	return nil
}

// tooOld is why a program must not go on.
func tooOld(known, level uint32) error {
	return fmt.Errorf("%w: the cluster's nodes apply changes by level %d, and this program knows %d: start the version that the others have",
		ErrOldProgram, level, known)
}
