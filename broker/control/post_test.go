package control

import (
	"context"
	"errors"
	"testing"
	"time"
)

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
