package direct

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	beatEvery = 200 * time.Millisecond
	maxMissed = 2 // beats

	handshakeTime = 5 * time.Second
	dialTime      = 2 * time.Second
	halfOpen      = 32 // handshakes of others that are under way

	askAgain   = time.Second // a node that does not say where it listens
	retryFirst = beatEvery
	retryLast  = 30 * time.Second
	lasting    = time.Minute // a link that was up for this long is made anew at once
)

// Peer is another node.
type Peer struct {
	Number     uint64
	Identifier string // the name in its certificate
}

// Config is what Links are started with.
type Config struct {
	Listener net.Listener // Close closes it
	TLS      *tls.Config  // for both sides, each verifying the other (conf.Identity)
	Self     uint64
	Logger   *slog.Logger

	// Peers are the nodes that there are now, this one may be among them. It may be called at any time.
	Peers func() []Peer
	// Ask asks another node where it listens for this; "" if it does not.
	Ask func(ctx context.Context, node uint64) (address string, err error)
	// Receive is called for each new link, by the goroutine that reads it, and gives what takes its frames, which may be kept.
	// An error closes the link. Calls come one at a time, and for a link before that for the one which replaces it.
	Receive func(link *Link) (take func(frame []byte) error)
	// Down is called when a link is over and nothing comes over it any more; nil: nobody wants to know.
	Down func(link *Link)

	limit   int           // bytes that wait for a socket; 0: maxWaiting
	beat    time.Duration // 0: beatEvery
	missed  int           // beats; 0: maxMissed
	unasked int           // 0: tellUnasked
}

// Links are the direct connections of a node with others. Its methods may be called at the same time.
type Links struct {
	cfg    Config
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	ended  sync.WaitGroup
	half   chan struct{} // a place for each handshake

	conns atomic.Pointer[map[uint64]*Link] // by number; replaced as a whole
	lost  atomic.Uint64

	beginning sync.Mutex // of a link: it is put in its place, and Receive is called

	mu     sync.Mutex // replacing conns
	closed bool
	tries  map[uint64]*try // by number, of those that this node dials
	told   time.Time       // a stranger was told last
}

// Start begins to listen, and to connect with those of higher numbers.
func Start(cfg Config) *Links {
	if cfg.limit == 0 {
		cfg.limit = maxWaiting
	}
	if cfg.beat == 0 {
		cfg.beat = beatEvery
	}
	if cfg.missed == 0 {
		cfg.missed = maxMissed
	}
	if cfg.unasked == 0 {
		cfg.unasked = tellUnasked
	}
	cfg.TLS = cfg.TLS.Clone()
	cfg.TLS.NextProtos = []string{protocol2, protocol}
	cfg.TLS.DynamicRecordSizingDisabled = true // a frame is to be one write and one read
	l := &Links{cfg: cfg, half: make(chan struct{}, halfOpen), tries: make(map[uint64]*try)}
	l.conns.Store(&map[uint64]*Link{})
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.ended.Go(l.accept)
	l.ended.Go(l.look)
	return l
}

// Addr is where it listens.
func (l *Links) Addr() *net.TCPAddr { return l.cfg.Listener.Addr().(*net.TCPAddr) }

// Send sends a frame of at most MaxFrame bytes to a node, and never waits; frame is not kept. False: there is no link, or it has
// just broken, and the frame has to go another way.
func (l *Links) Send(node uint64, frame []byte) bool {
	c := (*l.conns.Load())[node]
	return c != nil && len(frame) <= MaxFrame && c.send(frame) == nil
}

// Link is the link with a node; nil: there is none.
func (l *Links) Link(node uint64) *Link { return (*l.conns.Load())[node] }

// Up are the numbers of the nodes with which there is a link.
func (l *Links) Up() map[uint64]bool {
	up := make(map[uint64]bool)
	for node := range *l.conns.Load() { // order: it is a set
		up[node] = true
	}
	return up
}

// Lost counts the links that broke.
func (l *Links) Lost() uint64 { return l.lost.Load() }

// Close closes everything and returns when nothing is received any more.
func (l *Links) Close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	_ = l.cfg.Listener.Close()          // nobody can use it any more, whatever it says
	for _, c := range *l.conns.Load() { // order: each is closed by itself
		c.close(errClosed)
	}
	l.ended.Wait()
}

// look keeps the links alive, and makes those that are missing.
func (l *Links) look() {
	every := time.NewTicker(l.cfg.beat)
	defer every.Stop()
	for {
		peers := l.cfg.Peers()
		for _, c := range *l.conns.Load() { // order: each is looked at by itself
			if !slices.Contains(peers, c.peer) {
				c.close(errRemoved)
				continue
			}
			c.beat(l.cfg.missed)
		}
		for _, p := range peers {
			if p.Number > l.cfg.Self {
				l.try(p)
			}
		}
		select {
		case <-every.C:
		case <-l.ctx.Done():
			return
		}
	}
}

// serve puts a connection in its place, in which it is until it is closed.
func (l *Links) serve(c *Link) {
	_ = c.send(beat) // the other end waits for it, before anything else; what is wrong has closed the connection
	take, err := l.begin(c)
	if err != nil {
		c.close(err)
		return
	}
	l.cfg.Logger.Info("a direct link is up", "node", c.peer.Number, "address", c.out.RemoteAddr().String())
	err = c.serve(take)
	l.mu.Lock()
	conns := maps.Clone(*l.conns.Load())
	if conns[c.peer.Number] == c {
		delete(conns, c.peer.Number)
		l.conns.Store(&conns)
	}
	stops := l.closed
	l.mu.Unlock()
	if l.cfg.Down != nil {
		l.cfg.Down(c)
	}
	if !stops {
		l.lost.Add(1)
		l.cfg.Logger.Log(context.Background(), lostLevel(err), "a direct link is down; its messages take the route meanwhile", "node", c.peer.Number, "reason", err)
	}
}

// begin makes a link the one with its node.
func (l *Links) begin(c *Link) (take func(frame []byte) error, err error) {
	l.beginning.Lock()
	defer l.beginning.Unlock()
	if err := l.put(c); err != nil {
		return nil, err
	}
	return l.cfg.Receive(c), nil
}

// put replaces an older connection with the same node: that one would not be made anew if it were any good.
func (l *Links) put(c *Link) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return errClosed
	}
	conns := maps.Clone(*l.conns.Load())
	if old := conns[c.peer.Number]; old != nil {
		old.close(errReplaced)
	}
	conns[c.peer.Number] = c
	l.conns.Store(&conns)
	return nil
}

// String is for logs.
func (p Peer) String() string { return fmt.Sprintf("node %d (%s)", p.Number, p.Identifier) }
