package broker_test

import (
	"fmt"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/subjects"
)

// passed is how many requests a node has passed on.
func passed(t testing.TB, d *broker.Daemon, way string) float64 {
	t.Helper()
	return scrape(t, d)[fmt.Sprintf("oclocks_passed_on_total{way=%q}", way)]
}

// linkedNodes are three nodes with direct links between all of them, who have simple requests come to the node of their caller's server.
func linkedNodes(t *testing.T) (*brokertest.Cluster, []*nats.Conn) {
	t.Helper()
	c, conns := startNodes(t, 3)
	eventually(t, "links between all nodes", func() bool { return fmt.Sprint(linksOf(t, c)) == "[2 2 2]" })
	comeHere(t, c, conns)
	return c, conns
}

// comeHere sends so many simple requests that they come to the node of their caller's server.
func comeHere(t *testing.T, c *brokertest.Cluster, conns []*nats.Conn) {
	t.Helper()
	for i, d := range c.Daemons {
		eventually(t, "simple requests come to the node of their caller's server", func() bool {
			for range 60 {
				ask(t, conns[i], "locks.check.anyone", `{"name":"any","token":1}`)
			}
			return d.Mapped(conf.DefaultZone)
		})
	}
}

// Simple requests come to each node in turn until they come often; few of them, or such as come to a bucket's own subject, change nothing.
func TestSimpleRequestsComeHereWhenThereAreMany(t *testing.T) {
	c, conns := startNodes(t, 3)
	for range 15 {
		ask(t, conns[0], "locks.check.anyone", `{"name":"any","token":1}`)
	}
	name := nameAt(t, conns[0], c.Daemons[0].Node())
	hot := fmt.Sprintf("locks.b.%d.check.anyone", subjects.BucketOf(name, uint32(len(c.Daemons[0].Shared().Views))))
	for range 60 {
		ask(t, conns[0], hot, fmt.Sprintf(`{"name":%q,"token":1}`, name))
		ask(t, conns[0], "locks.ping.anyone", "")
	}
	for i, d := range c.Daemons {
		if d.Mapped(conf.DefaultZone) {
			t.Errorf("node %d has simple requests come to it", i)
		}
	}
	comeHere(t, c, conns)
}

// What another node is primary of goes there over the direct link, and the answer comes back the same way: grants and refusals,
// with a session and without.
func TestRequestsArePassedOnDirectly(t *testing.T) {
	c, conns := linkedNodes(t)
	for at, nc := range conns {
		steady(t, func() error { return passedOnDirectly(t, c, at, nc) })
	}
}

// passedOnDirectly asks at one node for what another one is primary of.
func passedOnDirectly(t *testing.T, c *brokertest.Cluster, at int, nc *nats.Conn) error {
	t.Helper()
	session := ask(t, nc, "locks.session-open.anyone", `{"ttl":"20s"}`).text("session")
	name := nameAt(t, nc, c.Daemons[(at+1)%3].Node())
	direct, routed := passed(t, c.Daemons[at], "direct"), passed(t, c.Daemons[at], "nats")
	static := acquire(t, nc, fmt.Sprintf(`{"name":%q,"data":{"a":[1]},"holder":"me"}`, name))
	refused := ask(t, nc, "locks.acquire.anyone", fmt.Sprintf(`{"name":%q}`, name)).refused(409, "held")
	if refused["holder"] != "me" {
		t.Errorf("refused with %v", refused)
	}
	key := static.text("key")
	renewed := ask(t, nc, "locks.renew.anyone", fmt.Sprintf(`{"name":%q,"key":%q,"ttl":"30s"}`, name, key)).granted()
	if renewed.number("token") != static.number("token") {
		t.Errorf("renewed: %v, not %v", renewed.fields, static.fields)
	}
	ask(t, nc, "locks.check.anyone", fmt.Sprintf(`{"name":%q,"token":%d}`, name, static.number("token")))
	ask(t, nc, "locks.release.anyone", fmt.Sprintf(`{"name":%q,"key":%q}`, name, key))
	ask(t, nc, "locks.release.anyone", fmt.Sprintf(`{"name":%q,"key":%q}`, name, key)).refused(404, "not_held")
	body := fmt.Sprintf(`{"name":%q,"session":%q,"request":1}`, name, session)
	own := acquire(t, nc, body)
	if again := acquire(t, nc, body); again.number("token") != own.number("token") {
		t.Errorf("asked again: %v, not %v", again.fields, own.fields)
	}
	ask(t, nc, "locks.release.anyone", fmt.Sprintf(`{"name":%q,"session":%q,"request":2,"key":%q}`, name, session, own.text("key")))
	direct, routed = passed(t, c.Daemons[at], "direct")-direct, passed(t, c.Daemons[at], "nats")-routed
	if direct != 9 || routed != 0 {
		return fmt.Errorf("%v of 9 requests were passed on directly, and %v over NATS", direct, routed)
	}
	return nil
}

// Requests that wait are passed on over NATS, whose primary tells the caller himself.
func TestWaitersArePassedOnOverNATS(t *testing.T) {
	c, conns := linkedNodes(t)
	name := nameAt(t, conns[0], c.Daemons[1].Node())
	held := acquire(t, conns[0], fmt.Sprintf(`{"name":%q}`, name))
	wait := begin(t, conns[0], "locks.acquire.anyone", fmt.Sprintf(`{"name":%q,"wait":"1m","request":"w"}`, name))
	queued(t, conns[0], name, 1)
	if n := passed(t, c.Daemons[0], "nats"); n == 0 {
		t.Error("nothing was passed on over NATS")
	}
	ask(t, conns[0], "locks.release.anyone", fmt.Sprintf(`{"name":%q,"key":%q}`, name, held.text("key")))
	wait.answer().granted()
}

// Many requests of one caller with one reply subject are all answered.
func TestOneReplySubjectForMany(t *testing.T) {
	c, conns := linkedNodes(t)
	name := nameAt(t, conns[0], c.Daemons[1].Node())
	inbox := nats.NewInbox()
	answers := must(conns[0].SubscribeSync(inbox))(t)
	const n = 100
	for range n {
		if err := conns[0].PublishRequest("locks.acquire.anyone", inbox, fmt.Appendf(nil, `{"name":%q}`, name)); err != nil {
			t.Fatal(err)
		}
	}
	granted := 0
	for i := range n {
		msg, err := answers.NextMsg(patience)
		if err != nil {
			t.Fatalf("%d of %d are answered: %v", i, n, err)
		}
		if read(t, msg).fields["granted"] == true {
			granted++
		}
	}
	if granted != 1 {
		t.Errorf("%d were granted", granted)
	}
}

// A link breaks while the other node works: what has an id is asked again and has one effect.
func TestALinkBreaksUnderRequests(t *testing.T) {
	c, conns := linkedNodes(t)
	name := nameAt(t, conns[0], c.Daemons[1].Node())
	release := make(chan struct{})
	c.Daemons[1].Hold(release)
	before := passed(t, c.Daemons[0], "direct")
	first := begin(t, conns[0], "locks.acquire.anyone", fmt.Sprintf(`{"name":%q,"request":"a"}`, name))
	eventually(t, "it is passed on", func() bool { return passed(t, c.Daemons[0], "direct") > before })
	c.Daemons[1].CutDirect()
	eventually(t, "it is passed on again", func() bool { return passed(t, c.Daemons[0], "nats") > 0 })
	close(release)
	token := first.answer().granted().number("token")
	again := acquire(t, conns[0], fmt.Sprintf(`{"name":%q,"request":"a"}`, name))
	if again.number("token") != token {
		t.Errorf("token %d, and %d for the same request", token, again.number("token"))
	}
}

// The primary dies with requests: one that has an id is carried out by the next one, and the caller of the other is told.
func TestThePrimaryDiesWithRequests(t *testing.T) {
	started := 0
	c := brokertest.StartCluster(t, 3, t.TempDir(), func(s *conf.Settings) {
		if started++; started == 1 { // the one that is asked; one that crashes leaves its metrics' server behind
			s.HTTP = "127.0.0.1:0"
		}
	})
	conns := []*nats.Conn{connect(t, url(c.Daemons[0]))}
	settled(t, conns[0], 3)
	links := func() int { return linksOf(t, &brokertest.Cluster{Daemons: c.Daemons[:1]})[0] }
	eventually(t, "links with both", func() bool { return links() == 2 })
	allVote(t, conns[0], 3)
	comeHere(t, &brokertest.Cluster{Daemons: c.Daemons[:1]}, conns)
	name := nameAt(t, conns[0], c.Daemons[1].Node())
	release := make(chan struct{})
	c.Daemons[1].Hold(release)
	before := passed(t, c.Daemons[0], "direct")
	safe := begin(t, conns[0], "locks.acquire.anyone", fmt.Sprintf(`{"name":%q,"request":"a"}`, name))
	unsafe := begin(t, conns[0], "locks.release.anyone", fmt.Sprintf(`{"name":%q,"key":"0123456789abcdef"}`, name))
	eventually(t, "they are passed on", func() bool { return passed(t, c.Daemons[0], "direct") == before+2 })
	crashed := make(chan struct{})
	go func() {
		c.Daemons[1].Crash(t)
		close(crashed)
	}()
	eventually(t, "the link is down", func() bool { return links() == 1 })
	close(release)
	<-crashed
	safe.answer().granted()
	unsafe.answer().refused(503, "unavailable")
}

// What is passed on to a node that nobody reaches is decided about again, and answered.
func TestPassedOnToNobody(t *testing.T) {
	c, conns := startNodes(t, 3)
	for i := range c.Daemons {
		inbox := nats.NewInbox()
		answers := must(conns[0].SubscribeSync(inbox))(t)
		if err := conns[0].Flush(); err != nil {
			t.Fatal(err)
		}
		c.Daemons[0].PassOn(conf.DefaultZone, fmt.Sprintf("nobody/%d", i), inbox, 99)
		msg, err := answers.NextMsg(patience)
		if err != nil {
			t.Fatal(err)
		}
		read(t, msg).granted()
	}
}

// One that cannot be kept until NATS has taken it is refused if nobody listens there; who listens answers it as any other.
func TestPassedOnToNobodyAndNotKept(t *testing.T) {
	c, conns := startNodes(t, 2)
	empty := c.Daemons[0].FillOutward(conf.DefaultZone)
	defer empty()
	ask := func(name string, node uint64) answer {
		t.Helper()
		inbox := conns[0].NewInbox() + ".~one"
		answers := must(conns[0].SubscribeSync(inbox))(t)
		if err := conns[0].Flush(); err != nil {
			t.Fatal(err)
		}
		c.Daemons[0].PassOn(conf.DefaultZone, name, inbox, node)
		msg, err := answers.NextMsg(patience)
		if err != nil {
			t.Fatal(err)
		}
		return read(t, msg)
	}
	ask("lost", 99).refused(503, "unavailable")
	name := nameAt(t, conns[0], c.Daemons[1].Node())
	ask(name, 2).granted()
}

// One that would be decided about later is refused where its zone has too many of those, and not another zone's.
func TestTooManyArePutOff(t *testing.T) {
	c, conns := startNodes(t, 2)
	inbox := nats.NewInbox()
	answers := must(conns[0].SubscribeSync(inbox))(t)
	if err := conns[0].Flush(); err != nil {
		t.Fatal(err)
	}
	empty := c.Daemons[0].FillAside(conf.DefaultZone)
	c.Daemons[0].PassOn(conf.DefaultZone, "many", inbox, 99)
	read(t, must(answers.NextMsg(patience))(t)).refused(503, "unavailable")
	empty()
	c.Daemons[0].PassOn(conf.DefaultZone, "many", inbox, 99)
	read(t, must(answers.NextMsg(patience))(t)).granted()
}
