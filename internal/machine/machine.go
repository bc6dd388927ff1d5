package machine

import (
	"math"
	"time"

	"github.com/opencluster/oclocks/internal/mutant"
)

// Never is the time of something that is not going to happen.
const Never = math.MaxInt64

// Config is what a Machine is made with.
type Config struct {
	User      string        // the last token of every subject
	Buckets   uint32        // from info; a power of two
	Timeout   time.Duration // silence after which a request is repeated for the first time
	Lease     time.Duration // wanted lease of the session; 0 for the broker's default
	Secret    string        // come back as an earlier session; "" for a new one
	Name      string        // holder text of the session, for people
	Location  string
	FirstBeat uint64 // number of the first keep-alive: above that of every earlier process that had the same session; 16 for each millisecond
	Seed      uint64 // of the jitter of repeated requests, and of the first number in an earlier session: unlike in two processes that begin at once
	MaxCalls  int    // unfinished requests at most; beyond, Submit refuses
	Lanes     int    // lanes at most; 0 for none
	Busy      int    // requests to a node in a second that are worth a lane; 0 for the default
	Conn      Conn   // the connection at the start
	InStep    bool   // keep-alives go out together with those of all machines that have this Phase, and the same lease
	Phase     int64  // a time in the past
}

// Conn names the NATS connection, so that the broker notices when it is closed. The zero Conn is unknown. Node is the node that
// it goes to, "" if that is not known.
type Conn struct {
	Server string
	CID    uint64
	Node   string
}

// ActionKind says what an Action is.
type ActionKind uint8

// The actions.
const (
	Send      ActionKind = iota // publish Body on Subject with the reply token Reply
	Finish                      // Call is over, its Result is set
	Change                      // Hold has ended: it is lost or released, see its Err
	Opened                      // a session is open: subscribe to the events on Subject and no other session's
	Anew                        // Call goes on as a new request; what was sent before may have its effect too
	OpenLane                    // connect to Node, subscribe there to Reply, and say LaneOpened, and later LaneLost; or LaneLost alone
	CloseLane                   // end the lane, and say nothing
	Listen                      // subscribe to Reply over the home connection
	Unlisten                    // end that
)

// Action is something that the caller is to do.
type Action struct {
	Kind    ActionKind
	Subject string
	Reply   string // last tokens of the reply subject
	Lane    int    // number of the lane; Send: 0 is the home connection, and so is one that has ended meanwhile
	Node    string // Send: the only one that it is for, if it is a keep-alive; "" if it is any other message or for all nodes
	Body    []byte
	Call    *Call
	Hold    *Hold
}

// Machine is a client's requests, session and holds.
type Machine struct {
	cfg       Config
	out       []Action
	rng       uint64
	connected bool
	conn      Conn
	closing   bool
	broken    error // there will never be a connection again

	buckets   uint32
	mapChange uint64
	rtt       roundTrip
	asking    *Call            // the info request that looks for the new map
	homes     map[uint32]*home // by bucket: where the buckets are that the machine has something in
	vacant    []*Call          // probes of the buckets whose primary nobody can reach, oldest first
	lanes     map[string]*lane // by node
	slots     []slot           // those that are open or about to be
	lanesDue  int64            // no lane is idle before

	ids      uint64
	byID     map[uint64]*Call
	others   callList // unfinished calls without a number, oldest first
	callsDue int64    // no call is due before

	session  session
	holds    []*Hold
	holdsDue int64   // no hold is due before
	ghosts   []*Hold // given up, but the broker may count them still
	doubted  []*Hold // to be asked for by renew
	checking int     // renews of doubted holds under way
	buried   graves  // holds that are over: released, and answered
	refused  graves  // of acquires that brought no hold: nothing but their names and numbers is known
}

// New makes a machine that is connected and has no session.
func New(cfg Config) *Machine {
	return &Machine{
		cfg: cfg, rng: cfg.Seed, connected: true, conn: cfg.Conn, buckets: cfg.Buckets, byID: map[uint64]*Call{},
		homes: map[uint32]*home{}, lanes: map[string]*lane{}, slots: make([]slot, cfg.Lanes), callsDue: Never, holdsDue: Never, lanesDue: Never,
		session: session{secret: cfg.Secret, beat: cfg.FirstBeat, nextRound: Never, retryAt: Never, keepIdle: cfg.Secret != ""},
	}
}

// Take gives the actions since the last Take; the slice is valid until the next input.
func (m *Machine) Take() []Action {
	out := m.out
	m.out = m.out[:0]
	return out
}

func (m *Machine) act(a Action) { m.out = append(m.out, a) }

// Next is when Tick is to be called, Never if nothing is under way. It may be early, never late.
func (m *Machine) Next() int64 {
	return min(m.callsDue, m.holdsDue, m.lanesDue, m.roundDue())
}

// Tick does what has become due by now.
func (m *Machine) Tick(now int64) {
	m.tickHolds(now)
	if now >= m.callsDue {
		m.callsDue = Never
		m.resendDue(now, &m.others)
		m.resendDue(now, &m.session.flight)
	}
	m.tickBeats(now)
	m.tickLanes(now)
}

// Calls is the number of unfinished requests, those of the machine itself included.
func (m *Machine) Calls() int { return len(m.byID) }

// Disconnected says that the connection broke. Requests wait for the next one; holds whose grace is shorter than their
// lease are trusted no longer than 3/4 of it.
func (m *Machine) Disconnected(now int64) {
	m.tickHolds(now)
	if !m.connected {
		return
	}
	m.connected = false
	for _, h := range m.holds {
		if cut := now + threeQuarters(h.grace); h.connection() && h.grace < h.lease && (h.cut == 0 || cut < h.cut) {
			h.cut = cut
			m.holdsDue = min(m.holdsDue, h.cut)
		}
	}
	m.tickHolds(now)
}

// Connected says that there is a connection again, or another one. The session comes back first, with the new
// connection's name; then everything unanswered is sent again.
func (m *Machine) Connected(now int64, conn Conn) {
	m.tickHolds(now)
	m.connected, m.conn = true, conn
	m.occupyAll()
	if m.session.phase != none {
		m.reopen(now)
	}
	m.resendAll(now, &m.others)
}

// random is splitmix64: jitter needs no better, and a seed must replay.
func (m *Machine) random() uint64 {
	m.rng += 0x9e3779b97f4a7c15
	z := m.rng
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// jitter gives d plus or minus an eighth, so that clients that failed together do not come back together.
func (m *Machine) jitter(d int64) int64 {
	span := d / 4
	if span <= 0 {
		return d
	}
	return d - d/8 + int64(m.random()%uint64(span))
}

func threeQuarters(d int64) int64 {
	if mutant.On(mutant.ClientWholeLease) {
		return d
	}
	return d - d/4
}
