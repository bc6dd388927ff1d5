package replicated

import "github.com/opencluster/oclocks/bucket/chain"

// urgency tells which messages an answer waits for.
type urgency struct {
	view chain.View // under which the last message was sent
	told uint64     // what this copy has confirmed under it
}

// separate gives the messages of a round to those that are sent at once or to those that may wait for others. Changes for
// a member of the in-sync set and the confirmation of new ones by it are what answers wait for. What goes on to the rest
// of the chain, and what the rest tells of itself, only has to come before long; that they all may be lost is part of the
// chain's contract, so they may be late.
func (b *Bucket) separate(messages []chain.Message, out *Output) {
	for i := range messages {
		if m := &messages[i]; b.urgency.wanted(b.chain, m) {
			out.Messages = append(out.Messages, *m)
		} else {
			out.Later = append(out.Later, *m)
		}
	}
}

func (u *urgency) wanted(r *chain.Replica, m *chain.Message) bool {
	if u.view.Epoch != m.Epoch {
		u.view, u.told = r.View(), 0
	}
	switch m.Kind {
	case chain.Append:
		return m.Again > 0 || u.view.Counts(m.To)
	case chain.Ack:
		if m.Resend || m.Again > 0 {
			return true
		}
		if seq := m.Progress[0].Seq; seq > u.told {
			u.told = seq
			return u.view.Counts(m.From)
		}
		return false
	default:
		return true
	}
}
