package machine

import "github.com/opencluster/oclocks/subjects"

// home is what the machine knows of one bucket: which node was its primary, in the highest epoch that it was told of. It
// decides only whom to ask; whoever answers for the bucket is believed by what he answers.
type home struct {
	bucket uint32
	node   string // "" if not known
	epoch  uint64
	astray bool // a lane to the node did not lead to the primary, who has not told of himself since

	tally tally // of the answer that is being compared
	odd   odd
}

func (m *Machine) bucketOf(name string) uint32 { return subjects.BucketOf(name, m.buckets) }

// homeOf gives the home of a bucket, of which nothing may be known yet.
func (m *Machine) homeOf(bucket uint32) *home {
	at := m.homes[bucket]
	if at == nil {
		at = &home{bucket: bucket}
		m.homes[bucket] = at
	}
	return at
}

// primaryIs takes the word of a node that it is primary of a bucket in an epoch. A word of an older epoch, like that of a
// repeated reply, is ignored. In a higher one the bucket has changed hands, and what was sent before may have died with the
// old primary: it is sent again, all but the call with whose answer the word came.
func (m *Machine) primaryIs(now int64, at *home, epoch uint64, node string, but *Call) {
	if epoch < at.epoch || node == "" {
		return
	}
	changed := at.epoch != 0 && epoch > at.epoch
	at.node, at.epoch, at.astray = node, epoch, false
	if changed {
		m.resendTo(now, at.bucket, but)
	}
}

// resendTo sends again what was sent to a bucket earlier and is not answered, and what waits for its primary: numbered calls
// first, in the order of their numbers.
func (m *Machine) resendTo(now int64, bucket uint32, but *Call) {
	for _, l := range []*callList{&m.session.flight, &m.others} {
		for _, c := range l.all() {
			switch {
			case c.list != l || c == but || c.bucket != bucket || !c.Req.Op.OnName() || c.role == toProbe:
			case c.state == gated, c.state == flying && c.last < now && !c.once():
				c.refused = 0
				m.send(now, c)
			}
		}
	}
}

// ServerDown says that a node is gone, or is not what it was: what was sent to its buckets, or to buckets whose primary is
// not known, may never be answered. A probe of each such bucket finds out when somebody answers for it again.
func (m *Machine) ServerDown(now int64, node string) {
	m.tickHolds(now)
	if !m.connected {
		return
	}
	for _, l := range []*callList{&m.others, &m.session.flight} {
		for _, c := range l.all() {
			if c.list != l || c.state != flying || !c.Req.Op.OnName() || c.role == toProbe {
				continue
			}
			if at := m.homes[c.bucket]; at == nil || at.node == "" || at.node == node {
				m.probe(now, c, nil)
			}
		}
	}
}

// Locate takes the answer to info: the number of buckets.
func (m *Machine) Locate(now int64, info *subjects.Info) {
	if n := info.Buckets; n != 0 && n&(n-1) == 0 && info.Map.Change >= m.mapChange {
		m.mapChange = info.Map.Change
		m.resize(now, n)
	}
}

// moved takes a map of the buckets; it says whether it is a newer one than was known. An older one, which a node tells that
// is behind, is not believed, unless it is all that is told for a long time (stubborn).
func (m *Machine) moved(now int64, to *subjects.Map, stubborn bool) bool {
	if to == nil || len(to.Primary) == 0 {
		return false
	}
	n := uint32(len(to.Primary))
	newer := to.Change > m.mapChange || n != m.buckets && (to.Change == m.mapChange || stubborn)
	if n&(n-1) != 0 || !newer {
		return false
	}
	m.mapChange = to.Change
	m.resize(now, n)
	return true
}

// resize takes another number of buckets. Half of each bucket goes to a new one with the same primary.
func (m *Machine) resize(now int64, buckets uint32) {
	if buckets == m.buckets {
		return
	}
	m.buckets, m.homes = buckets, map[uint32]*home{}
	for _, list := range [][]*Hold{m.holds, m.ghosts, m.buried.holds, m.refused.holds} {
		for _, h := range list {
			at := m.homeOf(m.bucketOf(h.Grant.Name))
			if at.node == "" {
				at.node, at.epoch = h.home.node, h.home.epoch
			}
			h.home = at
		}
	}
	if len(m.vacant) > 0 {
		m.occupyAll()
		m.sendGated(now)
	}
}

// patientMoves is how many older maps a call is told before it believes one: about two seconds.
const patientMoves = 20

// relocate sends the call again, at once if a newer map has come; without a map it asks for one first.
func (m *Machine) relocate(now int64, c *Call, why *subjects.Refusal) {
	to := why.Map
	if m.moved(now, to, c.refused >= patientMoves) {
		m.send(now, c)
		return
	}
	m.pause(now, c, why, minMoved, maxMoved)
	if m.asking == nil && !m.closing && (to == nil || len(to.Primary) == 0 && to.Change > m.mapChange) {
		m.asking = &Call{Req: &subjects.Request{Op: subjects.OpInfo}, role: toLocate}
		m.start(now, m.asking)
	}
}

// mapTold takes the answer to the machine's own info.
func (m *Machine) mapTold(now int64, data []byte) {
	m.asking = nil
	var info subjects.Info
	if data == nil || info.DecodeJSON(data) != nil {
		return // what asked is repeated, is refused again, and asks again
	}
	m.Locate(now, &info)
}
