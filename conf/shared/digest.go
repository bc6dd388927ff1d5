package shared

import (
	"encoding/binary"
	"encoding/json"
	"strconv"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf"
)

// The digest is the exclusive or of a hash of each entry, so that a change has to hash only what it changes, and the order
// of entries does not matter. Every entry has its kind and key in it, so that no two are the same.

// digest counts everything anew.
func digest(s *State) uint64 {
	d := head(s)
	for i := range s.Nodes {
		d ^= nodeEntry(&s.Nodes[i])
	}
	for i := range s.Zones {
		d ^= zoneEntry(&s.Zones[i])
	}
	for _, zone := range sortedKeys(s.Keys) {
		d ^= keysEntry(zone, s.Keys[zone])
		for i := range s.Keys[zone].Users {
			d ^= userEntry(zone, &s.Keys[zone].Users[i])
		}
	}
	for b := range s.Views {
		d ^= viewEntry(uint32(b), &s.Views[b])
	}
	for _, b := range s.pinned() {
		d ^= pinEntry(b, s.Pins[b])
	}
	return d
}

// head is everything that there is one of.
func head(s *State) uint64 {
	return entry("head", "", struct {
		Cluster  string
		Locked   bool
		Term     uint64
		Last     uint64
		Removed  []uint64
		Buckets  int
		Settings map[string]string

		Longest   time.Duration `json:",omitempty"`
		Shortened uint64        `json:",omitempty"`
		Level     uint32        `json:",omitempty"`
	}{s.Cluster, s.Locked, s.Term, s.Last, s.Removed, len(s.Views), s.Settings.all(), s.Longest, s.Shortened, s.Level})
}

func nodeEntry(n *Node) uint64      { return entry("node", strconv.FormatUint(n.Number, 10), n) }
func zoneEntry(z *conf.Zone) uint64 { return entry("zone", z.Name, z) }

func keysEntry(zone string, k conf.ZoneKeys) uint64 {
	k.Users = nil
	return entry("keys", zone, k)
}

func userEntry(zone string, u *conf.User) uint64 { return entry("user", zone+"/"+u.Key, u) }

func pinEntry(bucket uint32, number uint64) uint64 {
	return entry("pin", strconv.FormatUint(uint64(bucket), 10), number)
}

// entry hashes a value by its JSON, which has the keys of maps in order.
func entry(kind, key string, value any) uint64 {
	text, err := json.Marshal(value)
	if err != nil {
		text = []byte(err.Error()) // no value that was let in has this
	}
	h := xxhash.New()
	for _, part := range []string{kind, "\x00", key, "\x00", string(text)} {
		_, _ = h.WriteString(part) // a hash takes everything
	}
	return h.Sum64()
}

// viewEntry is for views what entry is for the rest; they are many, and change often.
func viewEntry(bucket uint32, v *chain.View) uint64 {
	if v.Epoch == 0 {
		return 0
	}
	var room [4 + 8*64]byte
	b := append(room[:0], "view"...)
	b = binary.LittleEndian.AppendUint32(b, bucket)
	b = binary.LittleEndian.AppendUint64(b, v.Epoch)
	b = binary.LittleEndian.AppendUint64(b, uint64(v.InSync))
	if v.Recovery {
		b = append(b, 1)
	}
	for _, m := range v.Chain {
		b = binary.LittleEndian.AppendUint64(b, m.Node)
		b = binary.LittleEndian.AppendUint64(b, m.Inc)
	}
	return xxhash.Sum64(b)
}
