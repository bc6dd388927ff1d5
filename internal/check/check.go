package check

import (
	"fmt"
	"time"

	"github.com/opencluster/oclocks/subjects"
)

// Checker looks at one history. It is not safe for concurrent use, and does the same for the same events.
type Checker struct {
	opt   Options
	now   int64
	stats Stats
	wrong []Violation

	zones   map[string]*zone
	clients map[string]*client
	order   []*client // as they were first heard of
	fading  []faded   // over, oldest first from gone on
	gone    int
	doubted []Event // the last doubt about each bucket
}

type zone struct {
	name     string
	locks    map[string]*lock
	order    []*lock // as they were first heard of
	sessions map[string][]opening
}

// client is somebody who asks. Its zone is that of its first event.
type client struct {
	name  string
	zone  *zone
	asks  map[string]*ask
	holds []*hold // that it was told of and that are not over
	dead  bool

	closing map[string]int64 // sessions of which it has asked the end, and when
}

// opening is the last time that a client has opened a session.
type opening struct {
	client      *client
	incarnation uint64
	place       string
}

// mayFollow says whether the opening may be the later one of two.
func (o *opening) mayFollow(p *opening) bool {
	if o.incarnation != p.incarnation {
		return o.incarnation > p.incarnation
	}
	return o.place == "" || o.place >= p.place
}

// lock is a name in a zone.
type lock struct {
	zone    *zone
	name    string
	high    uint64 // the highest token that anybody was told
	ticket  uint64 // and the highest ticket
	forgot  uint64 // the highest token that is forgotten
	doubts  int    // how often the end of its history may have been lost
	doubtAt int64  // the last time
	back    uint64 // the highest token at that time
	keptAt  int64  // the last time that it was given to nobody, free or not

	holds    map[uint64]*hold // by token, forgotten ones left out
	believed []*hold          // that somebody believes in; those whose time is over are taken out when somebody looks
	open     []*ask           // acquires whose end nobody knows yet, in the order of asking
	unclear  int              // acquires whose end nobody will ever know
	recent   []*hold          // told since the oldest open acquire was asked
	tickets  [2]uint64        // highest token and ticket of recent
	window   window

	forces map[uint64]force // by token: ends that were asked for of holds that nobody was told of yet
}

// ask is a request.
type ask struct {
	client *client
	lock   *lock // nil: it is about no name
	id     string
	op     subjects.Op
	at     int64

	session string
	mode    subjects.Mode
	kind    subjects.Kind
	drain   subjects.Drain
	take    uint32
	slots   uint32
	ttl     time.Duration
	grace   time.Duration
	wait    time.Duration
	key     uint64
	token   uint64
	plain   bool

	floor  uint64 // the highest token of its lock that anybody had been told when it was asked
	above  uint64 // and the highest ticket
	trust  int64  // release, renew: until when the hold was believed in when it was asked for
	first  bool   // release: nobody has asked for it before
	since  int    // the lock's doubts at that time
	target *ask   // cancel

	ticket    uint64 // as told
	ticketAt  int64  // when it was
	code      int    // of the first outcome; 0: none yet
	heard     int64  // when that was told
	told      uint64 // its token
	hold      *hold  // acquire: what was granted; release, renew, force: what it is about
	undone    bool   // it was answered that it was not carried out
	given     bool   // nobody waits for it any more
	cancelled *ask   // the first cancel of it
	left      bool   // a cancel was answered: it was waiting, or not there yet
	freed     bool   // a cancel was answered: what it was granted is released
	step      *step  // in the lock's window, if it is there
}

// known says whether the outcome was told.
func (a *ask) known() bool { return a.code != 0 }

// hold is what an acquire was granted.
type hold struct {
	lock   *lock
	client *client
	ask    *ask
	token  uint64
	ticket uint64
	key    uint64
	ttl    time.Duration
	lease  time.Duration
	at     int64 // when it was told

	index    int   // in its client's holds, -1: in none
	until    int64 // believed until then; 0: not
	listed   bool  // in its lock's believed
	touched  int64 // when something was last asked about it or believed
	returned bool  // its release was asked for
	forced   bool  // somebody asked for its end
	orphan   bool  // its session is over
	exempt   bool  // exclusion and keeping are not promised any more
	doubted  bool  // a recovery may have lost it
	loose    int64 // from then on it may be over for another reason than its time; Never: it may not

	ended  string // over, and how that was told; "": not
	endAt  int64
	doubts int // the lock's at the time when that was said; -1: perhaps before them
}

// New makes a checker of a history that is empty as yet.
func New(opt Options) *Checker {
	if opt.Keep == 0 {
		opt.Keep = DefaultKeep
	}
	if opt.MaxViolations == 0 {
		opt.MaxViolations = DefaultMaxViolations
	}
	if opt.Window == 0 {
		opt.Window = DefaultWindow
	}
	if opt.Budget == 0 {
		opt.Budget = DefaultBudget
	}
	return &Checker{opt: opt, zones: map[string]*zone{}, clients: map[string]*client{}}
}

// Add takes the next event. It keeps nothing of e but its strings.
func (c *Checker) Add(e *Event) {
	if len(c.wrong) >= c.opt.MaxViolations {
		return
	}
	c.stats.Events++
	if e.At < c.now {
		c.fail(Malformed, e, "%s of %s at %d comes after an event at %d", e.Kind, e.Client, e.At, c.now)
		return
	}
	c.now = e.At
	c.forget()
	switch e.Kind {
	case Doubt:
		c.doubt(e)
		return
	case Withheld:
		c.withheld(e)
		return
	}
	cl := c.client(e)
	if cl == nil {
		return
	}
	switch e.Kind {
	case Ask:
		c.ask(cl, e)
	case Answer:
		c.answer(cl, e)
	case Anew:
		c.anew(cl.asks[e.Request])
	case GiveUp:
		if a := cl.asks[e.Request]; a != nil && !a.known() && !a.given {
			c.giveUp(a)
		}
	case Believe:
		c.believe(cl, e)
	case Disbelieve:
		if h := cl.zone.hold(e.Name, e.Token); h != nil {
			h.disbelieve(c.now)
			h.loosen(c.now)
		}
	case Lost:
		c.lost(cl, e)
	case SessionLost:
		c.sessionLost(cl, e)
	case Disconnected:
		c.disconnected(cl)
	case Died:
		c.died(cl)
	case Seen:
		c.seen(cl, e)
	case Checked:
		c.checked(cl, e)
	case Noticed:
		c.noticed(cl, e)
	case SessionOpened:
		c.sessionOpened(cl, e)
	case KeptAlive, Connected: // what follows from them are beliefs
	case None, Doubt, Withheld, kindCount:
		c.fail(Malformed, e, "an event of kind %d", e.Kind)
	}
}

// End looks at what can only be said when the history is over. settled: everything was healed and had the time to come to rest,
// so that whoever still waits for an answer waits in vain.
func (c *Checker) End(at int64, settled bool) {
	c.now = max(c.now, at)
	if settled {
		c.inVain()
	}
	for _, z := range c.zonesInOrder() {
		for _, l := range z.order {
			c.cut(l)
		}
	}
}

// Violations are the promises that were not kept, in the order in which that was noticed.
func (c *Checker) Violations() []Violation { return c.wrong }

// Stats counts what was looked at until now.
func (c *Checker) Stats() Stats { return c.stats }

func (c *Checker) fail(p Promise, e *Event, format string, args ...any) {
	c.violate(p, e.Zone, e.Name, format, args...)
}

func (c *Checker) failLock(p Promise, l *lock, format string, args ...any) {
	c.violate(p, l.zone.name, l.name, format, args...)
}

func (c *Checker) violate(p Promise, zone, name, format string, args ...any) {
	if len(c.wrong) < c.opt.MaxViolations {
		c.wrong = append(c.wrong, Violation{Promise: p, At: c.now, Zone: zone, Name: name, Text: fmt.Sprintf(format, args...)})
	}
}

// client finds who did or saw what the event tells.
func (c *Checker) client(e *Event) *client {
	cl := c.clients[e.Client]
	switch {
	case cl == nil && e.Client == "":
		c.fail(Malformed, e, "a %s of nobody", e.Kind)
		return nil
	case cl == nil:
		cl = &client{name: e.Client, zone: c.zone(e.Zone), asks: map[string]*ask{}}
		c.clients[e.Client] = cl
		c.order = append(c.order, cl)
	case e.Zone != "" && e.Zone != cl.zone.name && (e.Kind == Answer || e.Kind == Lost || e.Kind == SessionLost):
		c.fail(Zones, e, "%s in zone %s hears in zone %s of what it did", cl.name, cl.zone.name, e.Zone)
		return nil
	case e.Zone != "" && e.Zone != cl.zone.name:
		c.fail(Malformed, e, "%s is in zone %s, and its %s is in zone %s", cl.name, cl.zone.name, e.Kind, e.Zone)
		return nil
	}
	if cl.dead {
		if e.Kind != Answer && e.Kind != Believe { // on their way when it died
			c.fail(Malformed, e, "%s has died, and its %s comes at %d", cl.name, e.Kind, e.At)
		}
		return nil
	}
	return cl
}

func (c *Checker) zone(name string) *zone {
	z := c.zones[name]
	if z == nil {
		z = &zone{name: name, locks: map[string]*lock{}, sessions: map[string][]opening{}}
		c.zones[name] = z
	}
	return z
}

// lock finds a lock, and begins its record if this is the first that is heard of it.
func (c *Checker) lock(z *zone, name string) *lock {
	l := z.locks[name]
	if l == nil {
		l = &lock{zone: z, name: name, holds: map[uint64]*hold{}}
		for i := range c.doubted {
			if d := &c.doubted[i]; d.doubts(l) {
				l.doubts++
				l.doubtAt = max(l.doubtAt, d.At)
			}
		}
		z.locks[name] = l
		z.order = append(z.order, l)
	}
	return l
}

// hold finds a hold of which somebody was told, nil if there is none.
func (z *zone) hold(name string, token uint64) *hold {
	if l := z.locks[name]; l != nil {
		return l.holds[token]
	}
	return nil
}
