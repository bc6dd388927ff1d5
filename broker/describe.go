package broker

import (
	"encoding/json"
	"time"

	"github.com/opencluster/oclocks/bucket/chain"
)

// describeTime is how long the shards may take to tell what their copies look like.
const describeTime = 300 * time.Millisecond

// CopyStatus is one copy of a bucket, as `oclocks-cli cluster` shows it.
type CopyStatus struct {
	Bucket    uint32   `json:"bucket"`
	Role      string   `json:"role"`
	Epoch     uint64   `json:"epoch"`
	Chain     []uint64 `json:"chain,omitempty"` // node numbers, the primary first
	InSync    int      `json:"in_sync"`         // how many of the chain every answer waits for
	Acting    bool     `json:"acting,omitempty"`
	Degraded  bool     `json:"degraded,omitempty"`
	Recovery  bool     `json:"recovery,omitempty"`
	Seq       uint64   `json:"seq"`  // of the newest change that it has
	Hash      string   `json:"hash"` // of its history up to there
	Confirmed uint64   `json:"confirmed"`
	Tail      uint64   `json:"tail,omitempty"` // primary: the whole chain has everything up to here
	Stopped   string   `json:"stopped,omitempty"`
	Holds     int      `json:"holds"`
	Waiters   int      `json:"waiters"`
}

// copies asks the shards for this node's copies, by bucket; nil if one of them does not get to it in time.
func (d *Daemon) copies() []*CopyStatus {
	if !d.sharded.Load() {
		return nil // somebody asks while this node starts
	}
	parts := make(chan []CopyStatus, len(d.shards))
	d.tell(func(s *shard) {
		list := make([]CopyStatus, 0, len(s.cells))
		for _, c := range s.cells {
			list = append(list, c.status())
		}
		parts <- list
	})
	all := make([]*CopyStatus, d.buckets())
	timeout := time.After(describeTime)
	for range d.shards {
		select {
		case list := <-parts:
			for i := range list {
				if number := int(list[i].Bucket); number < len(all) {
					all[number] = &list[i]
				}
			}
		case <-timeout:
			return nil
		}
	}
	return all
}

// description is what a node tells the others of its copies.
type description struct {
	Partial bool          `json:"partial,omitempty"` // only of those that people should look at: of all it would be too long
	Copies  []*CopyStatus `json:"copies"`            // by bucket
	Direct  []uint64      `json:"direct,omitzero"`   // as in subjects.ClusterNode
}

// describe gives the copies and the direct links of this node as JSON, a description.
func (d *Daemon) describe() json.RawMessage {
	all := d.copies()
	if all == nil {
		return nil // a shard that does not get to it has other things to do
	}
	direct := d.directLinks()
	text := encodeDescription(description{Copies: all, Direct: direct})
	if len(text) <= maxDescription {
		return text
	}
	for i, c := range all {
		if c != nil && !c.remarkable() {
			all[i] = nil
		}
	}
	if text = encodeDescription(description{Partial: true, Copies: all, Direct: direct}); len(text) > maxDescription {
		return nil
	}
	return text
}

// maxDescription is the longest description that is sent to another node, in bytes. One that would be longer tells only of
// copies that people should look at.
const maxDescription = 768 << 10

func encodeDescription(d description) json.RawMessage {
	text, err := json.Marshal(d)
	if err != nil {
		return nil // numbers and texts always can be told
	}
	return text
}

// remarkable says whether a copy is not as it should be.
func (c *CopyStatus) remarkable() bool {
	return c.Degraded || c.Recovery || c.Stopped != "" || c.Role == chain.Primary.String() && !c.Acting
}

func (c *cell) status() CopyStatus {
	st := c.Chain().Status()
	usage := c.Table().Totals()
	out := CopyStatus{
		Bucket: c.Number(), Role: st.Role.String(), Epoch: st.View.Epoch, InSync: st.View.InSync, Acting: st.Acting,
		Degraded: st.Degraded, Recovery: st.View.Recovery, Seq: st.Last.Seq, Hash: hashText(st.Last.Hash),
		Confirmed: st.Confirmed, Stopped: st.Stopped, Holds: usage.Holds, Waiters: usage.Waiters,
	}
	for _, m := range st.View.Chain {
		out.Chain = append(out.Chain, m.Node)
	}
	if st.Role == chain.Primary {
		out.Tail = st.Last.Seq
		for _, p := range st.Below {
			out.Tail = min(out.Tail, p.Seq)
		}
	}
	return out
}

func hashText(h uint64) string {
	const digits = "0123456789abcdef"
	var b [16]byte
	for i := range b {
		b[i] = digits[h>>(60-4*i)&15]
	}
	return string(b[:])
}
