package broker

import (
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/subjects"
)

// What was to be done because simple requests come often, and has failed, is tried again when they have come often once more.
func TestAMappingThatFailsIsTriedAgain(t *testing.T) {
	z := &zone{}
	z.simples.asked, z.simples.often = simpleBusy, true
	addr, msg := subjects.Address{Path: subjects.Simple, Op: subjects.OpAcquire}, &nats.Msg{Sub: &nats.Subscription{Queue: queueGroup}}
	if z.asked(addr, msg); z.simples.asked != simpleBusy {
		t.Errorf("%d are counted after it was done", z.simples.asked)
	}
	z.simples.failed.Store(true)
	if z.asked(addr, msg); z.simples.asked != 1 || z.simples.often {
		t.Errorf("%d are counted after it has failed", z.simples.asked)
	}
	if z.asked(addr, msg); z.simples.asked != 2 {
		t.Errorf("%d are counted later", z.simples.asked)
	}
}
