package control

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf/shared"
)

// TestTheBoxHasLimits: what the network sends in excess is lost and counted, what this process has to say is not.
func TestTheBoxHasLimits(t *testing.T) {
	b := newBox()
	for range boxEvents + 10 {
		b.put(func(*desk) {})
	}
	b.notice(func(*desk) {})
	if _, events := b.take(); len(events) != boxEvents+1 || b.dropped != 10 {
		t.Errorf("%d events, %d dropped", len(events), b.dropped)
	}
	if _, events := b.take(); len(events) != 0 {
		t.Errorf("%d events after they were taken", len(events))
	}
	select {
	case <-b.wake:
	default:
		t.Error("nobody is woken")
	}
}

// TestTheBoxKeepsTheNewest: of leases, and of states before the copies are there.
func TestTheBoxKeepsTheNewest(t *testing.T) {
	b := newBox()
	b.grant(lease{chain.Lease{Until: 1}, 1})
	b.grant(lease{chain.Lease{Until: 2}, 3})
	b.push(1, &shared.State{Change: 1, Views: []chain.View{{Epoch: 1}}})
	b.push(2, &shared.State{Change: 2, Views: []chain.View{{Epoch: 2}, {}}})
	if _, _, ok := b.next(); ok {
		t.Error("a change is told before anybody is there")
	}
	if granted, _ := b.take(); granted == nil || granted.Until != 2 || granted.Live != 3 {
		t.Errorf("granted %+v", granted)
	}
	if granted, _ := b.take(); granted != nil {
		t.Errorf("granted once more: %+v", granted)
	}
	b.open()
	views, next, ok := b.next()
	if !ok || next.Change != 2 || fmt.Sprint(views) != "[{0 e2 []}]" {
		t.Errorf("%v, change %d", views, next.Change)
	}
}

// TestThePostNeverWaits: nobody publishes, and senders go on; what has no room is lost.
func TestThePostNeverWaits(t *testing.T) {
	p := newPost(nil)
	for range postMessages + 5 {
		p.send("s", []byte("x"))
	}
	if n := p.dropped.Load(); n != 5 {
		t.Errorf("%d dropped, want 5", n)
	}
	p = newPost(nil)
	big := make([]byte, postBytes/4)
	for range 6 {
		p.send("s", big)
	}
	if n := p.dropped.Load(); n != 2 {
		t.Errorf("%d dropped, want 2", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := p.flush(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("flush with nobody who publishes: %v", err)
	}
}

func TestTheBellWakesEverybody(t *testing.T) {
	var b bell
	b.ring() // for nobody
	one, two := b.wait(), b.wait()
	select {
	case <-one:
		t.Error("it rang for somebody who came later")
	default:
	}
	b.ring()
	<-one
	<-two
	select {
	case <-b.wait():
		t.Error("it rings on")
	default:
	}
}
