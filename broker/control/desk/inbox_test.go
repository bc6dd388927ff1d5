package desk

import (
	"testing"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

// TestTheInboxHasLimits: what the network sends in excess is lost and counted, what this process has to say is not.
func TestTheInboxHasLimits(t *testing.T) {
	b := NewInbox()
	for range maxEvents + 10 {
		b.Put(Heard{1})
	}
	b.Notice(Introduce{})
	if events := b.Take(false).events; len(events) != maxEvents+1 || b.Dropped() != 10 {
		t.Errorf("%d events, %d dropped", len(events), b.Dropped())
	}
	b.Sealed(maxBuckets, chain.Report{})
	if batch := b.Take(false); len(batch.events) != 0 || len(batch.reports) != 0 {
		t.Errorf("%+v after it was taken", batch)
	}
}

// TestTheInboxKeepsTheNewest: of leases, of reports, and of states before the copies are there.
func TestTheInboxKeepsTheNewest(t *testing.T) {
	b := NewInbox()
	b.Grant(Lease{chain.Lease{Until: 1}, 1})
	b.Grant(Lease{chain.Lease{Until: 2}, 3})
	b.Push(1, &shared.State{Change: 1, Views: []chain.View{{Epoch: 1}}})
	b.Push(2, &shared.State{Change: 2, Views: []chain.View{{Epoch: 2}, {}}})
	batch := b.Take(false)
	if len(batch.changes) > 0 {
		t.Error("a change is told before anybody is there")
	}
	if g := batch.granted; g == nil || g.Until != 2 || g.Live != 3 {
		t.Errorf("granted %+v", g)
	}
	b.Serve()
	if batch = b.Take(true); batch.granted != nil || len(batch.changes) > 0 || !batch.serve {
		t.Errorf("held back, and there are %+v", batch)
	}
	batch = b.Take(false)
	if len(batch.changes) != 1 || batch.changes[0].Change != 2 || len(batch.changes[0].views) != 1 || batch.changes[0].views[0].View.Epoch != 2 {
		t.Errorf("%+v", batch.changes)
	}
}
