package broker

import (
	"time"
)

// A node whose shard stands still, since the disk does not take what the journal writes, say, goes on asking for leases, and then nobody
// else may have its buckets for as long as that lasts. If it has no lease, since its control store stands still, too, others have them, but it
// still listens: NATS brings it half of what is asked of them, and its turn of the simple path. So it is watched whether the shards get on. A
// node one of which does not asks for no lease, takes no requests and is asked about no bucket until it does. Its buckets go to others as
// those of a node that is gone, by their views and leases; what the shard had begun takes effect, or none, as it does where a whole process
// stands still (bucket/replicated).
const (
	pulseTime = 250 * time.Millisecond

	// For how many of them a shard may be in one batch: 5 s, and 1 s without a lease. They are counted, since all stands still where the
	// process does.
	stillPulses  = 20
	lapsedPulses = 4
)

// pulse is what one look at the shards has seen.
type pulse struct {
	batches []uint64 // by shard
	still   []int    // looks since its batch began
	stands  bool     // one stood still at the last look; it gets on when its batch ends, and not by a lease that comes late
}

func newPulse(shards int) *pulse {
	return &pulse{batches: make([]uint64, shards), still: make([]int, shards)}
}

// look says which shard stands still, for a node that has a lease or not; -1: none.
func (p *pulse) look(shards []*shard, leased bool) (still int) {
	still = -1
	most := stillPulses
	if !leased || p.stands {
		most = lapsedPulses
	}
	for i, s := range shards {
		batch := s.inBatch.Load()
		if batch == 0 || batch != p.batches[i] {
			p.batches[i], p.still[i] = batch, 0
			continue
		}
		if p.still[i]++; p.still[i] >= most {
			still = i
		}
	}
	p.stands = still >= 0
	return still
}

// watchShards leaves the buckets to others while a shard stands still.
func (d *Daemon) watchShards() {
	every := time.NewTicker(pulseTime)
	defer every.Stop()
	p := newPulse(len(d.shards))
	for {
		select {
		case <-every.C:
		case <-d.over:
			return
		}
		still := p.look(d.shards, d.leaseLeft() > 0)
		switch {
		case still >= 0 && !d.still.Load() && !d.alone():
			d.rest(true) // before anything is written
			d.control.Alert(-1, "the node stands still: is its disk in order? It leaves its buckets to others until it gets on")
			d.log.Error("a shard stands still: the node leaves its buckets to others until it gets on", "shard", still)
		case still < 0 && d.still.Load():
			d.rest(false)
			d.log.Warn("the shards get on again")
		}
	}
}

// rest begins or ends that the node wants no buckets.
func (d *Daemon) rest(still bool) {
	d.still.Store(still)
	if err := d.control.Rest(still); err != nil {
		d.log.Debug("the node's leases", "error", err)
	}
	for _, s := range d.shards {
		s.queue.rest(still)
	}
	for _, z := range *d.zones.Load() { // order: each has its own
		z.rest(still)
	}
}

// rest begins or ends that the node is asked about no bucket, and takes no turn with the others.
func (z *zone) rest(still bool) {
	if still {
		z.leaveTurns()
	} else if err := z.takeTurns(); err != nil {
		z.d.log.Error("the node takes no turn with the others", "zone", z.name, "error", err)
	}
	for number := range uint32(z.d.buckets()) {
		z.turn(number)
	}
	z.mapAgain()
}
