package machine

import "github.com/opencluster/oclocks/subjects"

// A bucket is vacant while nobody listens for it: its primary has died and the next one is not chosen yet. Requests to it
// wait, and one small request, its probe, asks every few milliseconds whether somebody is there; so a thousand waiters cost
// as much as one, and hear of the new primary as soon. When the probe is answered, all are sent in their order: those that
// waited, and those that were sent to the old primary and may have died with it.

var nobodyListens = &subjects.Refusal{
	Code: 503, Reason: subjects.ReasonUnavailable, Message: "nobody listens: the bucket has no primary, or there is no broker",
}

// vacancy gives the probe of a vacant bucket, nil for any other bucket.
func (m *Machine) vacancy(bucket uint32) *Call {
	for _, p := range m.vacant {
		if p.bucket == bucket {
			return p
		}
	}
	return nil
}

// gated makes a call wait if its bucket is vacant.
func (m *Machine) gated(c *Call) bool {
	if len(m.vacant) == 0 || c.role == toProbe || !c.Req.Op.OnName() {
		return false
	}
	bucket := m.bucketOf(c.Req.Name)
	p := m.vacancy(bucket)
	if p == nil {
		return false
	}
	c.state, c.bucket, c.probe = gated, bucket, p
	return true
}

// vacate takes a call back that nobody has got.
func (m *Machine) vacate(now int64, c *Call) {
	m.probe(now, c, nobodyListens)
	c.why = nobodyListens
	m.send(now, c) // it is gated now
}

// probe begins to ask for a call's bucket: at once, or after a moment if it was found vacant just now. It is the bucket that has the name
// now: the call may have been sent when there were fewer, and who waits for the other half must not wait for this one.
func (m *Machine) probe(now int64, c *Call, why *subjects.Refusal) {
	bucket := m.bucketOf(c.Req.Name)
	if m.vacancy(bucket) != nil {
		return
	}
	req := &subjects.Request{Op: subjects.OpCheck, Name: c.Req.Name, Token: 1}
	p := &Call{Req: req, Raw: true, role: toProbe, bucket: bucket, since: now}
	m.vacant = append(m.vacant, p)
	m.register(p)
	m.others.add(p)
	if why == nil {
		m.send(now, p)
		return
	}
	m.poll(now, p, why)
}

// poll sends the probe again in a while: a moment at first, then up to 20 ms, more if many buckets are vacant.
func (m *Machine) poll(now int64, p *Call, why *subjects.Refusal) {
	m.pause(now, p, why, minPoll, min(max(20*minPoll, int64(len(m.vacant))*5*minPoll), maxPoll))
}

// probed takes an answer to a probe. That nobody can answer for the bucket yet is none; any other answer, whatever it says,
// comes from somebody who answers for it or knows who does.
func (m *Machine) probed(now int64, p *Call, refusal *subjects.Refusal) {
	if refusal != nil && refusal.Code == 503 {
		switch refusal.Why {
		case subjects.WhyMinQuorum, subjects.WhyRecovery, subjects.WhyOverloaded: // what it means to each, it is told itself
		default:
			if m.awaited(p.bucket) {
				m.poll(now, p, refusal)
				return
			}
		}
	}
	if refusal != nil && refusal.Code == 421 {
		m.moved(now, refusal.Map, false)
	}
	if p.state != finished { // or the map has another number of buckets, and all vacancies are over
		m.occupy(p)
		m.resendTo(now, p.bucket, nil)
		m.hurry(now)
	}
	m.closeOn(now)
}

// ServerUp says that a node has come or changed: it may have the buckets that are vacant.
func (m *Machine) ServerUp(now int64) {
	m.tickHolds(now)
	m.hurry(now)
}

// hurry asks for the other vacant buckets at once: what has ended one vacancy may have ended them all.
func (m *Machine) hurry(now int64) {
	for _, other := range m.vacant {
		if other.state == pausing {
			other.refused, other.due = 0, now
			m.callsDue = min(m.callsDue, now)
		}
	}
}

// awaited says whether a call waits for a bucket.
func (m *Machine) awaited(bucket uint32) bool {
	for _, l := range []*callList{&m.others, &m.session.flight} {
		for c := l.head; c != nil; c = c.next {
			if c.role != toProbe && c.bucket == bucket && c.Req.Op.OnName() && (c.state == gated || c.state == flying) {
				return true
			}
		}
	}
	return false
}

// Vacant is how long the oldest vacancy has lasted, in nanoseconds; 0 if there is none.
func (m *Machine) Vacant(now int64) int64 {
	if len(m.vacant) == 0 {
		return 0
	}
	return now - m.vacant[0].since
}

// occupy ends a vacancy.
func (m *Machine) occupy(p *Call) {
	for i, other := range m.vacant {
		if other == p {
			m.vacant = append(m.vacant[:i], m.vacant[i+1:]...)
			break
		}
	}
	m.finish(p, Result{})
}

// occupyAll ends all vacancies: what is sent next finds out anew. The caller sends.
func (m *Machine) occupyAll() {
	for len(m.vacant) > 0 {
		m.occupy(m.vacant[0])
	}
}

// sendGated sends what waited for vacancies that are over.
func (m *Machine) sendGated(now int64) {
	for _, l := range []*callList{&m.session.flight, &m.others} {
		for _, c := range l.all() {
			if c.list == l && c.state == gated {
				m.send(now, c)
			}
		}
	}
}
