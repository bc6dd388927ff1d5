package broker_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker"
	"github.com/opencluster/oclocks/subjects"
)

// A shard stands still in the middle of a batch, with the requests of a bundle in it, until its node has no lease and its buckets
// have other primaries. Those serve them, also whoever is connected to that node; and when the shard gets on, by the time at which its
// batch began, nothing of what it decides by it takes effect.
func TestAShardStandsStill(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes a while")
	}
	c, conns := startNodes(t, 3)
	allVote(t, conns[0], 3)
	old := c.Daemons[1]
	name := nameAt(t, conns[0], old.Node())
	hot := func(op string) string {
		return fmt.Sprintf("locks.b.%d.%s.anyone", subjects.BucketOf(name, uint32(len(old.Shared().Views))), op)
	}
	goOn := holdWithBundle(t, old, conns[1],
		`acquire {"name":"`+name+`","request":"early"}`, `acquire {"name":"`+name+`","request":"waits","wait":"1m"}`)
	var grant answer
	eventually(t, "another node grants the lock, to who is connected to the one that stands still", func() bool {
		msg, err := conns[1].Request(hot("acquire"), fmt.Appendf(nil, `{"name":%q,"request":"late","ttl":"10m"}`, name), patience/20)
		if err != nil {
			return false
		}
		grant = read(t, msg)
		return grant.fields["granted"] == true
	})
	if at := grant.text("node"); at == old.Node() {
		t.Fatalf("%s is granted by the node that stands still", name)
	}
	for text := range goOn() {
		t.Logf("told at last: %s", text)
		if strings.Contains(text, `"granted"`) {
			t.Errorf("granted beside token %d: %s", grant.number("token"), text)
		}
	}
	settled(t, conns[0], 3)
	for _, request := range []string{"early", "waits"} {
		eventually(t, "an answer to who asks again", func() bool {
			msg, err := conns[1].Request("locks.acquire.anyone", fmt.Appendf(nil, `{"name":%q,"request":%q}`, name, request), patience/2)
			if err != nil {
				return false
			}
			refusal, _ := read(t, msg).fields["error"].(map[string]any)
			if refusal == nil {
				t.Fatalf("granted beside token %d: %s", grant.number("token"), msg.Data)
			}
			return refusal["code"] == float64(409)
		})
	}
	checked := ask(t, conns[1], "locks.check.anyone", fmt.Sprintf(`{"name":%q,"token":%d}`, name, grant.number("token")))
	if checked.text("current") != "true" {
		t.Errorf("the lock's token is not current: %s", checked.msg.Data)
	}
}

// holdWithBundle has a daemon's shards stand still, in the batch that the requests of a bundle are in. goOn ends that; what comes from it are
// all messages of answers to the bundle until a second after.
func holdWithBundle(t *testing.T, d *broker.Daemon, nc *nats.Conn, lines ...string) (goOn func() <-chan string) {
	t.Helper()
	first, second := make(chan struct{}), make(chan struct{})
	d.Hold(first)
	inbox := nc.NewInbox() + "."
	answers := must(nc.SubscribeSync(inbox + "*"))(t)
	reply := inbox
	for i := range lines {
		reply += fmt.Sprint("~", i)
	}
	before := scrape(t, d)["oclocks_bundled_requests_total"]
	body := []byte(strings.Join(lines, "\n") + "\n")
	if err := nc.PublishRequest(subjects.BundleSubject(d.Node(), subjects.Anyone), reply, body); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the bundle is taken apart", func() bool {
		return scrape(t, d)["oclocks_bundled_requests_total"] == before+float64(len(lines))
	})
	d.HoldNext(second, func() { close(first) })
	return func() <-chan string {
		close(second)
		told := make(chan string, 100)
		go func() {
			defer close(told)
			for {
				msg, err := answers.NextMsg(patience / 10)
				if err != nil {
					return
				}
				told <- msg.Subject + " " + string(msg.Data)
			}
		}()
		return told
	}
}
