package core

import "fmt"

// wantsSnapshot says that the caller should give the FSM's state: the log has grown, the members are others than in the last
// snapshot, or Raft would send one.
func (n *Node) wantsSnapshot() bool {
	have := n.log.have
	if n.applied <= have || n.err != nil {
		return false
	}
	return n.log.wanted || n.applied-have >= 2*keepEntries || n.log.confIndex > have
}

// Snapshot gives the FSM's state, as of everything in the last Output, if that asked for it. The next Output stores it. Call
// it before Advance. Errors wrap ErrFailed.
func (n *Node) Snapshot(fsm []byte) error {
	if n.err != nil {
		return n.err
	}
	if n.applied <= n.log.have {
		return nil
	}
	body := snapshotBody{change: n.change, seen: n.seen, fsm: fsm}
	return n.guard(func() error {
		snap, err := n.log.CreateSnapshot(n.applied, n.conf.state(), body.encode())
		if err == nil {
			n.persist.Snapshot = snap
			n.log.have, n.log.wanted = n.applied, false
			err = n.compact()
		}
		if err != nil {
			n.err = fmt.Errorf("%w: snapshot at %d: %w", ErrFailed, n.applied, err)
		}
		return n.err
	})
}

// compact forgets entries long before the snapshot, as far as Raft itself is done with them.
func (n *Node) compact() error {
	first, err := n.log.FirstIndex()
	done := min(n.applied, n.rn.BasicStatus().Applied)
	if err != nil || done < first+keepEntries {
		return err
	}
	upTo := done - keepEntries
	n.persist.Compact = upTo
	return n.log.Compact(upTo)
}
