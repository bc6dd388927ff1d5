package check

import (
	"maps"

	"github.com/opencluster/oclocks/subjects"
)

// faded is a request or a hold that is over.
type faded struct {
	at   int64
	ask  *ask
	hold *hold
}

// fade notes that a request or a hold is over, so that it is forgotten after a while.
func (c *Checker) fade(a *ask, h *hold) { c.fading = append(c.fading, faded{c.now, a, h}) }

// forget leaves out what was over long ago.
func (c *Checker) forget() {
	for c.gone < len(c.fading) && c.fading[c.gone].at < c.now-int64(c.opt.Keep) {
		f := &c.fading[c.gone]
		switch {
		case f.ask != nil:
			delete(f.ask.client.asks, f.ask.id)
		default:
			c.forgetHold(f.hold)
		}
		*f = faded{}
		c.gone++
	}
	if c.gone > 1024 && c.gone > len(c.fading)/2 {
		n := copy(c.fading, c.fading[c.gone:])
		clear(c.fading[n:])
		c.fading, c.gone = c.fading[:n], 0
	}
}

// forgetHold leaves out a hold, unless somebody may still have it by then.
func (c *Checker) forgetHold(h *hold) {
	kept := h.ask.kind == subjects.Connection && !h.client.dead && !h.orphan // with its session
	if h.ended == "" && (kept || h.touched+late(h.span()) > c.now-int64(c.opt.Keep)) {
		if !h.listed {
			c.fade(nil, h)
		}
		return
	}
	h.leave()
	h.lock.forgot = max(h.lock.forgot, h.token)
	maps.DeleteFunc(h.lock.forces, func(token uint64, _ force) bool { return token <= h.lock.forgot })
	delete(h.lock.holds, h.token)
}
