package sim

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"sync"

	"github.com/nats-io/nkeys"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/subjects"
)

// zoneNames are the zones that there may be.
var zoneNames = []string{"z0", "z1", "z2"}

// populate makes the zones and the clients in them. Users of different zones have the same names, and so do their locks, requests and
// inboxes: what leaks looks like one's own.
func (w *world) populate() {
	w.zones = zoneNames[:1+w.draw(len(zoneNames))]
	w.lockEvents = w.draw(4) == 0
	kinds := w.draw(6) // now and then only one kind of clients is there
	for i := range w.mix.clients + len(w.zones) - 1 {
		zone, number := w.zones[i%len(w.zones)], i/len(w.zones)
		if kinds == 0 || kinds > 1 && w.draw(2) == 0 {
			w.clients = append(w.clients, newClient(w, zone, fmt.Sprintf("c%d", number)))
			continue
		}
		of := &person{zone: zone, user: fmt.Sprintf("u%d", number), beats: 1}
		w.after(w.between(500*ms, 3*second), func() { newMember(w, of, false) })
	}
}

// zoneAfter is another zone, the same if there is only one.
func (w *world) zoneAfter(zone string) string {
	for i, name := range w.zones {
		if name == zone {
			return w.zones[(i+1)%len(w.zones)]
		}
	}
	return zone
}

// zoneKeys are made once, and are the same in every process: they are in the frames of Raft, of which one may be damaged.
var zoneKeys = sync.OnceValues(func() (map[string]conf.ZoneKeys, error) {
	keys := map[string]conf.ZoneKeys{}
	for i, name := range zoneNames {
		made, err := seedsOf(1 + byte(i)*16)
		if err != nil {
			return nil, err
		}
		keys[name] = made
	}
	return keys, nil
})

// seedsOf are keys of a zone.
func seedsOf(first byte) (keys conf.ZoneKeys, err error) {
	seed := func() string {
		text, wrong := nkeys.EncodeSeed(nkeys.PrefixByteAccount, bytes.Repeat([]byte{first}, 32))
		err = cmp.Or(err, wrong)
		first++
		return string(text)
	}
	keys = conf.ZoneKeys{Account: seed(), Roles: map[conf.Role]string{}, Open: seed()}
	for _, role := range conf.Roles() {
		keys.Roles[role] = seed()
	}
	return keys, err
}

// zonesFounded are the zones that the cluster begins with.
func (w *world) zonesFounded() ([]conf.Zone, map[string]conf.ZoneKeys) {
	all, err := zoneKeys()
	if err != nil {
		w.fail("keys of the zones: %v", err)
	}
	var zones []conf.Zone
	keys := map[string]conf.ZoneKeys{}
	for _, name := range w.zones {
		zones = append(zones, conf.Zone{Name: name})
		keys[name] = all[name]
	}
	return zones, keys
}

// zoneSettings are those of all zones.
func (w *world) zoneSettings() map[string]bucket.ZoneSettings {
	settings := map[string]bucket.ZoneSettings{}
	for _, zone := range w.zones {
		settings[zone] = bucket.ZoneSettings{LockEvents: w.lockEvents}
	}
	return settings
}

// describeLocks draws what the primaries have.
func (w *world) describeLocks() string {
	var text strings.Builder
	state := w.committed()
	if state == nil {
		return ""
	}
	for b := range state.Buckets() {
		m := w.byNumber(viewOf(state, b).Primary().Node)
		if m == nil || !m.p.serving || m.p.shardOf(b).cell(b) == nil {
			continue
		}
		table := m.p.shardOf(b).cell(b).Table()
		for _, zone := range w.zones {
			recs, _, _ := table.List(zone, &subjects.Request{Op: subjects.OpList, Limit: 1000}, bucket.Now{Boot: m.clock()})
			for i := range recs {
				fmt.Fprintf(&text, "bucket %d, %s: %s\n", b, zone, recs[i].AppendJSON(nil))
			}
		}
	}
	return text.String()
}
