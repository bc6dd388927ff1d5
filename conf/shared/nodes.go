package shared

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/opencluster/oclocks/internal/mutant"
)

func (t *turn) register(c *Register) error {
	if err := c.check(); err != nil {
		return err
	}
	if level := max(1, c.Level); level < t.next.AppliedBy() {
		return fmt.Errorf("%w: it is %d, the node's program knows %d: start the version that the others have", ErrLevel, t.next.AppliedBy(), level)
	}
	if lease := t.next.Settings.NodeLease; c.Lease != 0 && c.Lease != lease {
		return fmt.Errorf("%w: the cluster's is %s, the node's %s", ErrLease, lease, c.Lease)
	}
	if slices.Contains(t.next.Removed, c.Raft) {
		return fmt.Errorf("%w: to join again it needs an empty data directory", ErrRemoved)
	}
	if o := t.next.NodeByRaft(c.Raft); o != nil && o.ID != c.ID {
		return fmt.Errorf("%w: node %d has the same control store (raft ID %d): was its directory copied?", ErrExists, o.Number, c.Raft)
	}
	n := Node{ID: c.ID, Number: t.next.Last + 1, Life: 1}
	if old := t.next.NodeByID(c.ID); old != nil {
		switch {
		case c.Raft != old.Raft || old.Start == 0:
		case c.Start == old.Start:
			t.res.Number, t.res.Life = old.Number, old.Life
			return nil
		case !slices.Contains(c.Starts, old.Start) && !mutant.On(mutant.OldDiskWelcome):
			return fmt.Errorf("%w: node %d", ErrOldDisk, old.Number)
		}
		n = *old
		if c.Fresh && !mutant.On(mutant.LostRecordsForgiven) || c.Raft != old.Raft {
			n.Life++
		}
		if n.Life > MaxLife {
			return fmt.Errorf("%w lives of node %d: remove it, and let it join with another identifier", ErrTooMany, n.Number)
		}
		if c.Raft != old.Raft {
			t.bury(old.Raft)
		}
	} else if len(t.next.Nodes) >= MaxNodes {
		return fmt.Errorf("%w nodes: there are %d", ErrTooMany, MaxNodes)
	}
	n.Raft, n.Routes, n.Clients, n.Arbiter, n.Registered = c.Raft, c.Routes, c.Clients, c.Arbiter, t.next.Change
	n.Start, n.Level = c.Start, c.Level
	if !slices.Contains(n.Edited, "name") {
		n.Name = c.Name
	}
	if !slices.Contains(n.Edited, "location") {
		n.Location = c.Location
	}
	if !slices.Contains(n.Edited, "priority") {
		n.Priority = c.Priority
		if n.Priority == 0 {
			n.Priority = DefaultPriority
		}
	}
	t.putNode(n)
	t.res.Number, t.res.Life = n.Number, n.Life
	return nil
}

func (c *Register) check() error {
	if len(c.ID) != 26 || strings.Trim(c.ID, "abcdefghijklmnopqrstuvwxyz234567") != "" {
		return fmt.Errorf("%w: %q is no identifier of a node", ErrValue, shorten(c.ID))
	}
	if c.Raft == 0 {
		return fmt.Errorf("%w: no raft ID", ErrValue)
	}
	if c.Priority < 0 || c.Priority > LowestPriority {
		return badPriority(c.Priority)
	}
	if err := checkText("name", c.Name, 1, 64); err != nil {
		return err
	}
	if err := checkText("location", c.Location, 0, 256); err != nil {
		return err
	}
	if len(c.Starts) > MaxStarts {
		return fmt.Errorf("%w starts: %d, at most %d", ErrTooMany, len(c.Starts), MaxStarts)
	}
	for _, list := range [][]string{c.Routes, c.Clients} {
		if len(list) > maxAddrs {
			return fmt.Errorf("%w addresses: %d, at most %d", ErrTooMany, len(list), maxAddrs)
		}
		for _, a := range list {
			if err := checkAddress(a); err != nil {
				return err
			}
		}
	}
	return nil
}

// putNode adds a node, or replaces the one with its number.
func (t *turn) putNode(n Node) {
	t.next.Nodes = slices.Clone(t.next.Nodes)
	t.swap(0, nodeEntry(&n))
	i := slices.IndexFunc(t.next.Nodes, func(o Node) bool { return o.Number == n.Number })
	if i < 0 {
		t.next.Nodes = append(t.next.Nodes, n)
		t.next.Last = n.Number
		return
	}
	t.swap(nodeEntry(&t.next.Nodes[i]), 0)
	t.next.Nodes[i] = n
}

// bury remembers a raft ID that must not come back.
func (t *turn) bury(raft uint64) {
	list := append(slices.Clone(t.next.Removed), raft)
	if len(list) > maxRemoved {
		list = list[len(list)-maxRemoved:]
	}
	t.next.Removed = list
}

func (t *turn) remove(number uint64) error {
	n := t.next.Node(number)
	switch {
	case n == nil:
		return fmt.Errorf("node %d: %w", number, ErrNotFound)
	case !slices.ContainsFunc(t.next.Nodes, func(o Node) bool { return o.Number != number && !o.Arbiter }):
		return fmt.Errorf("%w: node %d is the last one that can have buckets", ErrValue, number)
	}
	t.swap(nodeEntry(n), 0)
	t.bury(n.Raft)
	t.next.Nodes = slices.DeleteFunc(slices.Clone(t.next.Nodes), func(o Node) bool { return o.Number == number })
	for _, b := range t.next.pinned() {
		if t.next.Pins[b] == number {
			t.setPin(b, 0)
		}
	}
	return nil
}

func (t *turn) editNode(c *NodeEdit) error {
	old := t.next.Node(c.Number)
	if old == nil {
		return fmt.Errorf("node %d: %w", c.Number, ErrNotFound)
	}
	n := *old
	n.Edited = slices.Clone(n.Edited)
	edited := func(key string) {
		if !slices.Contains(n.Edited, key) {
			n.Edited = append(n.Edited, key)
			slices.Sort(n.Edited)
		}
	}
	if c.Name != nil {
		if err := checkText("name", *c.Name, 1, 64); err != nil {
			return err
		}
		if o := t.next.NodeByName(*c.Name); o != nil && o.Number != n.Number {
			return fmt.Errorf("name %s: node %d has it: %w", *c.Name, o.Number, ErrExists)
		}
		n.Name = *c.Name
		edited("name")
	}
	if c.Location != nil {
		if err := checkText("location", *c.Location, 0, 256); err != nil {
			return err
		}
		n.Location = *c.Location
		edited("location")
	}
	if c.Priority != nil {
		if *c.Priority < HighestPriority || *c.Priority > LowestPriority {
			return badPriority(*c.Priority)
		}
		n.Priority = *c.Priority
		edited("priority")
	}
	if c.Drain != nil {
		n.Drain = *c.Drain
	}
	t.putNode(n)
	return nil
}

func badPriority(p int) error {
	return fmt.Errorf("%w: priority %d: expected %d to %d", ErrValue, p, HighestPriority, LowestPriority)
}

func checkAddress(a string) error {
	host, port, err := net.SplitHostPort(a)
	if err == nil {
		_, err = strconv.ParseUint(port, 10, 16)
	}
	if err != nil || host == "" || len(a) > 256 {
		return fmt.Errorf("%w: %q is no address: expected HOST:PORT", ErrValue, shorten(a))
	}
	return nil
}

// checkText accepts low to high printable ASCII characters.
func checkText(what, text string, low, high int) error {
	if len(text) < low || len(text) > high {
		return fmt.Errorf("%w: %s: %d characters: expected %d to %d", ErrValue, what, len(text), low, high)
	}
	for _, r := range text {
		if r < ' ' || r > '~' {
			return fmt.Errorf("%w: %s: %q has %q in it", ErrValue, what, shorten(text), r)
		}
	}
	return nil
}
