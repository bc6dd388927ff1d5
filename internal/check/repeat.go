package check

import (
	"fmt"
	"strconv"

	"github.com/opencluster/oclocks/subjects"
)

// again compares an answer that comes again with the first: a request has one effect. A grant that is over by then is answered 410
// instead, and such an answer may overtake the grant on its way.
func (c *Checker) again(a *ask, e *Event) {
	remembered := early(Remembered)
	if c.opt.Wild {
		remembered /= 4
	}
	if a.plain || a.lock == nil || a.since != a.lock.doubts || c.now > a.at+remembered {
		return
	}
	l := a.lock
	switch {
	case a.code == 410 && e.Code == 200 && a.op == subjects.OpAcquire:
		c.lateGrant(a, e)
	case a.code == 410 || e.Code == 410 || a.op == subjects.OpCancel:
	case a.code != e.Code:
		c.failLock(Once, l, "%s was answered %s, and is answered %s now", a, a.outcome(), outcome(e))
	case e.Code == 200 && a.op == subjects.OpAcquire && (a.hold == nil || e.Token != a.hold.token || e.Ticket != a.hold.ticket || e.Key != a.hold.key):
		c.failLock(Once, l, "%s is granted twice: with token %d, ticket %d, key %x to %s, and with token %d, ticket %d, key %x", a, a.told, a.ticket,
			a.keyTold(), a.client.name, e.Token, e.Ticket, e.Key)
	case e.Code == 200 && e.Token != a.told:
		c.failLock(Once, l, "%s was answered with token %d, and is answered with token %d now", a, a.told, e.Token)
	}
}

// lateGrant takes a grant whose end was told before it.
func (c *Checker) lateGrant(a *ask, e *Event) {
	switch {
	case a.hold == nil:
		a.told = e.Token
		c.granted(a, e)
		if a.hold != nil {
			c.end(a.hold, "before it was told", a.at)
			a.hold.endAt = a.heard
		}
	case a.hold.token != e.Token:
		c.failLock(Once, a.lock, "%s is granted twice: with token %d and with token %d", a, a.hold.token, e.Token)
	}
}

func (a *ask) keyTold() uint64 {
	if a.hold == nil {
		return 0
	}
	return a.hold.key
}

func (a *ask) outcome() string { return codeText(a.code, a.told) }

func outcome(e *Event) string { return codeText(e.Code, e.Token) }

func codeText(code int, token uint64) string {
	if token != 0 {
		return fmt.Sprintf("%d with token %d", code, token)
	}
	return strconv.Itoa(code)
}
