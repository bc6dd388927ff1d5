package parking

import "github.com/opencluster/oclocks/bucket/replicated"

// Request is a caller's request. Its zone and size do not change while it is parked.
type Request[Z comparable] interface {
	Trip() *Trip
	Load() (zone Z, bytes int)
}

// Limits is how much of one zone may stand at the places of one lot; what comes beyond is refused.
type Limits struct {
	Requests int // at least 1
	Bytes    int // of their bodies
}

// DefaultLimits is what a shard of a daemon allows.
var DefaultLimits = Limits{Requests: 16 << 10, Bytes: 16 << 20}

// Lot is what stands at the buckets of one shard.
type Lot[Z comparable, R Request[Z]] struct {
	limits Limits
	loads  map[Z]Limits // what each zone has standing here
	closed bool
}

// NewLot makes a lot with nothing on it.
func NewLot[Z comparable, R Request[Z]](limits Limits) *Lot[Z, R] {
	return &Lot[Z, R]{limits: limits, loads: make(map[Z]Limits)}
}

// Place is what stands at one bucket, in order. The zero value is an empty one.
type Place[R any] struct {
	parked []R
	until  int64             // when the first of them is given up
	why    replicated.Turned // what keeps them from their turn
}

// Len is how many requests stand here.
func (p *Place[R]) Len() int { return len(p.parked) }

// Next is when the place wants to be looked at: now if something else keeps its requests from their turn than before. That
// another node can be asked comes with an input. Only for a place at which something stands.
func (p *Place[R]) Next(now int64, turned replicated.Turned) int64 {
	if turned != p.why {
		return now
	}
	return p.until
}

// Turn decides what becomes of a request that its bucket has not taken.
func (l *Lot[Z, R]) Turn(now int64, p *Place[R], r R, b Bucket) Way {
	trip := r.Trip()
	switch {
	case b.Turned == replicated.Full:
		return Overloaded
	case b.Turned == replicated.Misplaced && trip.Hops == 0:
		return Misplaced
	case b.Turned == replicated.Misplaced:
		return Again
	case b.orphaned():
		return l.park(now, p, r, b.Turned)
	case trip.Hops == 0:
		return Moved // so that its caller learns where to ask
	case trip.Hops > MaxHops:
		return NoPrimary
	case trip.Hops > 1 && trip.linger(now):
		return Linger
	}
	return Forward
}

func (l *Lot[Z, R]) park(now int64, p *Place[R], r R, why replicated.Turned) Way {
	trip := r.Trip()
	if trip.until == 0 {
		trip.until = now + int64(Time)
	}
	zone, bytes := r.Load()
	load := l.loads[zone]
	if l.closed || trip.until <= now || load.Requests >= l.limits.Requests || load.Bytes+bytes > l.limits.Bytes {
		return NoPrimary
	}
	l.loads[zone] = Limits{load.Requests + 1, load.Bytes + bytes}
	p.parked = append(p.parked, r)
	p.until, p.why = p.parked[0].Trip().until, why
	return Parked
}

// Look says which requests stand at a bucket no longer, in order: back are to be put in front of everything that their zones have
// in the queue, since the bucket or another node can be asked; over are to be refused as [NoPrimary]. One of the two is empty. They
// are the caller's, who clears over when it is through with it.
func (l *Lot[Z, R]) Look(now int64, p *Place[R], b Bucket) (back, over []R) {
	if len(p.parked) == 0 {
		return nil, nil
	}
	if !b.orphaned() {
		return l.leave(p, len(p.parked)), nil
	}
	p.why = b.Turned // perhaps another reason than before: until this one has gone nothing is to be done
	n := 0
	for n < len(p.parked) && p.parked[n].Trip().until <= now {
		n++
	}
	return nil, l.leave(p, n)
}

// Close gives what stands at a place, all of which is to be refused as [NoPrimary]; so is what would be parked from now on,
// wherever on the lot.
func (l *Lot[Z, R]) Close(p *Place[R]) []R {
	l.closed = true
	return l.leave(p, len(p.parked))
}

// leave takes the first n from a place.
func (l *Lot[Z, R]) leave(p *Place[R], n int) []R {
	gone := p.parked[:n:n]
	for _, r := range gone {
		zone, bytes := r.Load()
		if load := l.loads[zone]; load.Requests > 1 {
			l.loads[zone] = Limits{load.Requests - 1, load.Bytes - bytes}
		} else {
			delete(l.loads, zone)
		}
	}
	if p.parked = p.parked[n:]; len(p.parked) == 0 {
		p.parked, p.until = nil, 0
		return gone
	}
	p.until = p.parked[0].Trip().until
	return gone
}
