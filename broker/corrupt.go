package broker

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/internal/fault"
)

// corruption is the fault point chain.corrupt: one change is damaged each time that it is sent, as often as was asked for.
type corruption struct {
	bucket uint32
	seq    uint64
	times  int
}

// damage damages what it has to. The change in memory stays as it is.
func (c *corruption) damage(m *chain.Message) {
	times, err := strconv.Atoi(fault.Value("chain.corrupt"))
	if err != nil || c.times >= times {
		return
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
		}
	}
}
