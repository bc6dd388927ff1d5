package direct

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Three nodes: all have links with all, and what is sent arrives whole and in order, whatever its size, from whoever sends it.
func TestFramesArriveInOrder(t *testing.T) {
	p := newPlace(t)
	nodes := map[uint64]*node{}
	for number := range uint64(3) {
		nodes[number+1] = p.add(number + 1)
	}
	nodes[1].linked(t, 2, 3)
	nodes[2].linked(t, 1, 3)
	nodes[3].linked(t, 1, 2)

	const each = 300
	sizes := []int{1, 3, 100, 1400, 16 << 10, readBytes - headBytes, readBytes - headBytes + 1, readBytes, 300_000, MaxFrame - 20}
	var senders sync.WaitGroup
	for from := range nodes {
		for to := range nodes {
			if from != to {
				senders.Go(func() {
					for i := range each {
						frame := fmt.Sprintf("%d:%s", i, strings.Repeat("x", sizes[i*7%len(sizes)]))
						if i%40 != 0 {
							frame = frame[:min(len(frame), 2000)] // few large ones
						}
						if !nodes[from].Send(to, []byte(frame)) {
							t.Errorf("frame %d from %d to %d is not sent", i, from, to)
							return
						}
					}
				})
			}
		}
	}
	senders.Wait()
	for to, n := range nodes {
		for from := range nodes {
			if from == to {
				continue
			}
			eventually(t, fmt.Sprintf("all frames from %d to %d", from, to), func() bool { return len(n.frames(from)) == each })
			for i, frame := range n.frames(from) {
				if !strings.HasPrefix(frame, fmt.Sprint(i, ":")) {
					t.Fatalf("frame %d from %d to %d is %.20q", i, from, to, frame)
				}
			}
		}
		if n.Lost() != 0 {
			t.Errorf("node %d has lost %d links", to, n.Lost())
		}
	}
	if nodes[1].Send(2, make([]byte, MaxFrame+1)) || nodes[1].Send(4, nil) {
		t.Error("what cannot be sent is")
	}
}

// A node that restarts elsewhere is found again; meanwhile there is no link, and nobody is misled.
func TestALinkComesBack(t *testing.T) {
	p := newPlace(t)
	a := p.add(1)
	second := p.identified(2)
	b := p.start(2, second)
	a.linked(t, 2)
	reaches(t, a, b, 1, 2, "before")
	p.at(2, "") // it is not there
	b.Close()
	a.linked(t)
	if a.Send(2, []byte("nobody")) {
		t.Error("a frame is sent to nobody")
	}
	b = p.start(2, second)
	a.linked(t, 2)
	reaches(t, a, b, 1, 2, "after")
	reaches(t, b, a, 2, 1, "back")
	if a.Lost() != 1 || !a.log.has("a direct link is down") || a.log.has("level=WARN") {
		t.Errorf("lost %d; a restart of the other node is nothing to warn of", a.Lost())
	}
}

// A process that has died without a word is replaced by its successor.
func TestANewerLinkReplacesAnOlderOne(t *testing.T) {
	p := newPlace(t)
	second := p.add(2)
	first := p.identified(1)
	for i := range 3 {
		c, err := p.fakeClient(first, second.Addr().String(), protocol)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(appendFrame(nil, fmt.Append(nil, i))); err != nil {
			t.Fatal(err)
		}
		eventually(t, "its frame", func() bool { return len(second.frames(1)) == i+1 })
	}
	eventually(t, "the older ones are gone", func() bool { return second.Lost() >= 2 })
}

// A link that is replaced as soon as it is up is told of before the one that replaces it, so that nobody takes the older one for the newer.
func TestLinksAreToldOfInTheirOrder(t *testing.T) {
	p := newPlace(t)
	told, goOn := make(chan *Link), make(chan struct{})
	second := p.add(2, func(c *Config) {
		c.Receive = func(link *Link) func([]byte) error {
			told <- link
			<-goOn
			return func([]byte) error { return nil }
		}
	})
	first := p.identified(1)
	dial := func() {
		t.Helper()
		c, err := p.fakeClient(first, second.Addr().String(), protocol)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, make([]byte, headBytes)); err != nil { // its first beat: it is about to be put in its place
			t.Fatal(err)
		}
	}
	dial()
	older := received(t, told)
	dial()
	select {
	case <-told:
		t.Error("the newer link is told of while the older one is")
	case <-time.After(quick):
	}
	if second.Link(1) != older {
		t.Error("the newer link is in its place before the older one was told of")
	}
	close(goOn)
	if newer := received(t, told); newer == older || second.Link(1) != newer {
		t.Error("the newer link is not in its place")
	}
}

// A node that the cluster has removed has no link any more, and gets none.
func TestARemovedNodeLosesItsLink(t *testing.T) {
	p := newPlace(t)
	a, b := p.add(1), p.add(2)
	a.linked(t, 2)
	p.remove(1)
	b.linked(t)
	a.linked(t)
	eventually(t, "it is refused", func() bool { return b.log.has(named(1) + " is no other node of this cluster") })
}

// The one with the lower number is told once that it cannot connect, goes on trying, and says when it can.
func TestAFirewall(t *testing.T) {
	p := newPlace(t)
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	second := p.identified(2)
	p.at(2, closed.Addr().String())
	a := p.add(1)
	eventually(t, "it is told", func() bool { return a.log.has("no direct link can be made") })
	b := p.start(2, second)
	a.linked(t, 2)
	b.linked(t, 1)
	if n := strings.Count(a.log.String(), "no direct link can be made"); n != 1 {
		t.Errorf("told %d times", n)
	}
}

// A node that never says where it listens is told of once, and is not taken for trouble.
func TestANodeThatWantsNoLinks(t *testing.T) {
	p := newPlace(t)
	second := p.identified(2)
	p.at(2, "")
	a := p.add(1, func(c *Config) { c.unasked = 1 })
	eventually(t, "it is told", func() bool { return a.log.has("no direct link is made") })
	if a.log.has("level=WARN") {
		t.Error("it is warned of")
	}
	p.start(2, second)
	a.linked(t, 2)
}

// Both ends take the newest version that they know, and hear when a link is over.
func TestVersions(t *testing.T) {
	p := newPlace(t)
	var down atomic.Int32
	second := p.add(2, func(c *Config) { c.Down = func(*Link) { down.Add(1) } })
	first := p.identified(1)
	c, err := p.fakeClient(first, second.Addr().String(), protocol)
	if err != nil {
		t.Fatal(err)
	}
	second.linked(t, 1)
	if v := second.Link(1).Version(); v != 1 {
		t.Errorf("version %d with an older node", v)
	}
	c.Close()
	eventually(t, "the older node's link is over", func() bool { return down.Load() == 1 })
	a := p.start(1, first)
	second.linked(t, 1)
	a.linked(t, 2)
	if v, w := second.Link(1).Version(), a.Link(2).Version(); v != 2 || w != 2 {
		t.Errorf("versions %d and %d", v, w)
	}
	if !a.Link(2).Send([]byte("one"), nil, []byte("two")) {
		t.Error("nothing is sent")
	}
	eventually(t, "both frames", func() bool { return fmt.Sprint(second.frames(1)) == "[one two]" })
	if a.Link(3) != nil {
		t.Error("a link with nobody")
	}
}
