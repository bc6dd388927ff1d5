package chain

import "github.com/opencluster/oclocks/internal/mutant"

// Receive takes a message. from is the node that sent it, as the network proves it. ErrMisdirected comes back for what does
// not belong here at all; everything else that is late, double or out of place is dealt with.
func (r *Replica) Receive(from uint64, m Message) error {
	if m.Bucket != r.cfg.Bucket || from == 0 || m.From.Node != from || m.To.Node != r.state.Self.Node {
		return ErrMisdirected
	}
	r.dirty = true
	if m.Epoch > r.view.Epoch {
		r.heard = max(r.heard, m.Epoch) // nothing is done under the old view any more
		return nil
	}
	if m.To != r.state.Self || m.Kind == Stale {
		return nil
	}
	if m.Epoch < r.view.Epoch && !mutant.On(mutant.OldEpochAccepted) {
		r.send(m.From, Message{Kind: Stale})
		return nil
	}
	if !r.open() {
		return nil
	}
	switch m.Kind {
	case Append:
		r.onAppend(&m)
	case Ack:
		r.onAck(&m)
	case Ask:
		if m.From == r.up.peer {
			r.up.hello, r.up.heardAt = true, r.now
		}
	case Hello:
		r.onHello(&m)
	case Chunk:
		r.onChunk(&m)
	case ChunkAck:
		r.onChunkAck(&m)
	case Join:
		r.onJoin(&m)
	case Redirect:
		r.onRedirect(&m)
	case Welcome:
		r.onWelcome(&m)
	case Leave:
		r.onLeave(&m)
	}
	return nil
}

// Ready gives what is to be done. Call it after as many inputs as were there: everything that is pending for one link goes
// into one message. The lists of the last Output, and those in its messages, are used again.
func (r *Replica) Ready(now int64) Output {
	r.now = max(r.now, now)
	r.given.begin()
	r.lead.begin(r)
	r.confirm()
	acting := r.acting()
	r.plan()
	r.hand()
	r.compact()
	r.downward()
	r.upward()
	out := r.out
	r.out = Output{Messages: r.given.swap(out.Messages)}

	out.Acting, out.Confirmed = r.acting(), r.confirmed
	out.Parting = acting && !out.Acting
	if r.lead != nil {
		out.Tail = r.tail()
		out.Recovering = r.lead.recover
	}
	if r.heard > r.view.Epoch {
		out.Behind = r.heard
	}
	r.dirty, r.readyAt = false, r.now
	return out
}

// hand gives out what is new for the journal and for the table.
func (r *Replica) hand() {
	last := r.log.last().Seq
	if r.unstored > 0 && !(r.up.ack && mutant.On(mutant.ConfirmedUnwritten)) {
		r.given.stored = append(r.given.stored, r.log.between(last-uint64(r.unstored), last)...)
		r.out.Append = r.given.stored
		r.unstored = 0
	}
	until := min(r.confirmed, last)
	if r.lead != nil {
		until = r.delivered
		if !r.lead.announced && r.acting() {
			r.lead.announced, r.promoted = true, true
			r.out.Promoted = r.lead.since
			until = last
		}
	}
	if until > r.delivered {
		r.given.told = append(r.given.told, r.log.between(r.delivered, until)...)
		r.out.Deliver = r.given.told
		r.delivered = until
	}
}

// compact forgets changes that nobody is known to need.
func (r *Replica) compact() {
	end := min(r.confirmed, r.delivered)
	wanted := end // by the copy after this one: everything from here on
	if l := r.down; l != nil {
		switch l.state {
		case streaming:
			wanted = l.acked
		case copying:
			if l.snap.taken {
				wanted = l.snap.point.Seq
			}
		case asking:
			wanted = 0
		}
	}
	count, bytes, seq := len(r.log.changes), r.log.bytes, r.log.base.Seq
	for seq < end {
		fits := count <= r.lim.Keep && bytes <= r.lim.KeepBytes
		queues := count <= r.lim.Queue && bytes <= r.lim.QueueBytes
		if fits || queues && seq >= wanted {
			break
		}
		bytes -= len(r.log.changes[seq-r.log.base.Seq].Data)
		count--
		seq++
	}
	r.log.compact(seq)
}

// Proposable says with which error Propose would refuse any change now, nil if it would take one.
func (r *Replica) Proposable() error {
	last := r.log.last().Seq
	switch {
	case r.lead == nil || !r.lead.announced || !r.open():
		return ErrNotPrimary
	case !r.leased():
		return ErrNoLease
	case r.lead.yielding:
		return ErrHandOver
	case last == r.lead.floor: // the change that ends a takeover must always get in
		return nil
	case last-r.confirmed >= uint64(r.lim.Pending) || r.lead.pending >= r.lim.PendingBytes:
		return ErrFull
	}
	return nil
}
