package broker

import (
	"bytes"
	"slices"
	"strconv"
	"time"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/internal/fault"
)

// corruption is the fault point chain.corrupt: one change is damaged each time that it is sent, as often as was asked for.
type corruption struct {
	bucket uint32
	seq    uint64
	times  int
}

// damage damages what it has to, and says whether it did. The change in memory stays as it is.
func (c *corruption) damage(m *chain.Message) (done bool) {
	times, err := strconv.Atoi(fault.Value("chain.corrupt"))
	if err != nil || c.times >= times {
		return false
	}
	for i := range m.Changes {
		change := &m.Changes[i]
		if c.seq == 0 && len(change.Data) > 0 {
			c.bucket, c.seq = m.Bucket, change.Seq
		}
		if m.Bucket == c.bucket && change.Seq == c.seq {
			m.Changes = slices.Clone(m.Changes) // they are the chain's memory
			m.Changes[i].Data = bytes.Clone(change.Data)
			m.Changes[i].Data[len(change.Data)-1] ^= 1
			c.times++
			done = true
		}
	}
	return done
}

// lateLook is how often it is looked whether the fault point chain.late is still armed.
const lateLook = 2 * time.Millisecond

// goWrong is the fault points of the chains: changes that wait for long between the decision to send them and the
// network, as they do in a process that is stopped there, and damaged ones.
func (l *links) goWrong(messages []chain.Message) {
	changes := slices.ContainsFunc(messages, func(m chain.Message) bool { return m.Kind == chain.Append && len(m.Changes) > 0 })
	if changes && fault.Value("chain.late") == "1" {
		l.d.log.Warn("changes wait on purpose", "fault", "chain.late")
		for fault.Value("chain.late") == "1" {
			<-time.After(lateLook)
		}
	}
	l.faults.Lock()
	defer l.faults.Unlock()
	for i := range messages {
		if m := &messages[i]; l.fault.damage(m) {
			l.d.log.Warn("a change is damaged on purpose", "fault", "chain.corrupt", "bucket", m.Bucket, "to", m.To.Node)
		}
	}
}
