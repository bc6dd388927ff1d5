package e2e

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/broker"
	"github.com/opencluster/oclocks/broker/admin"
	"github.com/opencluster/oclocks/broker/control"
	"github.com/opencluster/oclocks/bucket/chain"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/fault"
	"github.com/opencluster/oclocks/subjects"
)

// withFaults gives every node a file of its own with fault points, none of which is armed.
func (c *cluster) withFaults() *cluster {
	for _, n := range c.nodes {
		n.Env = append(n.Env, fault.Variable+"="+faultFile(n))
	}
	return c
}

// overNATS keeps the chains' messages where tap hears them: a direct link would take them by another way.
func (c *cluster) overNATS() *cluster {
	for _, n := range c.nodes {
		n.Env = append(n.Env, "OCLOCKS_DIRECT_LISTEN="+conf.Off)
	}
	return c
}

func faultFile(n *node) string { return n.Dir + ".faults" }

// arm arms a fault point of the i-th node, with nothing: disarms all of them.
func (c *cluster) arm(i int, points ...string) {
	c.t.Helper()
	file := faultFile(c.nodes[i])
	if err := os.WriteFile(file+"~", []byte(strings.Join(points, "\n")+"\n"), 0o600); err != nil {
		c.t.Fatal(err)
	}
	if err := os.Rename(file+"~", file); err != nil {
		c.t.Fatal(err)
	}
}

// inside is a connection into the account of the nodes at the i-th one, with the keys that are in its directory.
func (c *cluster) inside(i int) *nats.Conn {
	c.t.Helper()
	auth, err := conf.ReadAuth(c.nodes[i].Dir)
	if err != nil {
		c.t.Fatal(err)
	}
	creds, err := auth.NodesUser()
	if err != nil {
		c.t.Fatal(err)
	}
	return c.dial(i, nats.UserJWT(func() (string, error) { return creds.JWT, nil }, creds.Pair.Sign))
}

// admin is an operator at the i-th node.
func (c *cluster) admin(i int) *admin.Client {
	c.t.Helper()
	client, err := admin.Dial(c.nodes[i].Dir, "")
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(client.Close)
	return client
}

// inner is what one node says of itself and of its copies.
type inner struct {
	control.Status
	copies []broker.CopyStatus
}

// inners asks all nodes; it gives the answers of those that answer within a second, by index, and returns at once when all
// that are wanted have.
func (c *cluster) inners(nc *nats.Conn, wanted ...int) map[int]*inner {
	c.t.Helper()
	inbox := nc.NewInbox()
	sub, err := nc.SubscribeSync(inbox)
	if err != nil {
		c.t.Fatal(err)
	}
	defer sub.Unsubscribe()
	if err := nc.PublishRequest("status", inbox, nil); err != nil {
		c.t.Fatal(err)
	}
	all := make(map[int]*inner)
	missing := func(i int) bool { return all[i] == nil }
	for deadline := time.Now().Add(time.Second); slices.ContainsFunc(wanted, missing); {
		msg, err := sub.NextMsg(time.Until(deadline))
		if err != nil {
			break
		}
		var in inner
		if json.Unmarshal(msg.Data, &in.Status) != nil {
			continue
		}
		if len(in.Copies) > 0 {
			told := struct{ Copies *[]broker.CopyStatus }{&in.copies}
			if err := json.Unmarshal(in.Copies, &told); err != nil {
				c.t.Fatalf("what a node says of its copies: %v: %s", err, in.Copies)
			}
		}
		all[slices.IndexFunc(c.nodes, func(n *node) bool { return n.ID == in.Identifier })] = &in
	}
	return all
}

// until asks the nodes until they are as they should be, and gives what they said.
func (c *cluster) until(nc *nats.Conn, what string, wanted []int, ok func(map[int]*inner) bool) map[int]*inner {
	c.t.Helper()
	for deadline := time.Now().Add(3 * patience); ; {
		all := c.inners(nc, wanted...)
		there := !slices.ContainsFunc(wanted, func(i int) bool { return all[i] == nil })
		if there && ok(all) {
			return all
		}
		if time.Now().After(deadline) {
			text, _ := json.Marshal(all) //nolint:errchkjson // only shown
			c.t.Fatalf("%s: not after %s: %s", what, 3*patience, text)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// inner asks one node, until it has answered.
func (c *cluster) inner(nc *nats.Conn, i int) *inner {
	c.t.Helper()
	return c.until(nc, "an answer", []int{i}, func(all map[int]*inner) bool { return len(all[i].copies) > 0 })[i]
}

// whole waits until all wanted nodes have the same copies of all buckets, none is behind, and each bucket has all of them in
// its chain.
func (c *cluster) whole(nc *nats.Conn, wanted ...int) {
	c.t.Helper()
	for deadline := time.Now().Add(3 * patience); ; {
		why := unequal(c.inners(nc, wanted...), wanted)
		if why == "" {
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("not all copies are equal after %s: %s", 3*patience, why)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// unequal says which bucket is not as it should be, "" if there is none.
func unequal(all map[int]*inner, wanted []int) string {
	for _, i := range wanted {
		if all[i] == nil || len(all[i].copies) == 0 {
			return fmt.Sprintf("node %d says nothing", i+1)
		}
	}
	first := all[wanted[0]].copies
	for b := range first {
		for _, i := range wanted {
			if len(all[i].copies) != len(first) {
				return fmt.Sprintf("node %d has %d buckets", i+1, len(all[i].copies))
			}
			x := &all[i].copies[b]
			same := x.Epoch == first[b].Epoch && x.Seq == first[b].Seq && x.Hash == first[b].Hash
			if !same || len(x.Chain) != len(wanted) || x.Stopped != "" || x.Recovery {
				return fmt.Sprintf("node %d has %+v, node %d has %+v", wanted[0]+1, first[b], i+1, *x)
			}
		}
	}
	return ""
}

// bucketOf is a name's bucket.
func (c *cluster) bucketOf(i int, name string) uint32 {
	c.t.Helper()
	return subjects.BucketOf(name, c.info(i).Buckets)
}

// beside is another name in the bucket of a name.
func (c *cluster) beside(i int, name, prefix string) string {
	c.t.Helper()
	info := c.info(i)
	bucket := subjects.BucketOf(name, info.Buckets)
	for k := 0; ; k++ {
		if other := prefix + string(rune('a'+k%26)) + strings.Repeat("x", k/26); subjects.BucketOf(other, info.Buckets) == bucket {
			return other
		}
	}
}

// overheard is a message of a chain as it was on the wire.
type overheard struct {
	chain.Message
	subject string
}

// tap listens to what the copies of one bucket tell each other.
type tap struct {
	mu    sync.Mutex
	heard []overheard
	more  chan struct{}
}

func (c *cluster) tap(nc *nats.Conn, bucket uint32) *tap {
	c.t.Helper()
	w := &tap{more: make(chan struct{}, 1)}
	sub, err := nc.Subscribe("node.*.chain", func(m *nats.Msg) {
		for _, message := range decodeFrame(m.Data) {
			if message.Bucket == bucket {
				w.mu.Lock()
				w.heard = append(w.heard, overheard{message, m.Subject})
				w.mu.Unlock()
			}
		}
		select {
		case w.more <- struct{}{}:
		default:
		}
	})
	if err == nil {
		err = nc.Flush()
	}
	if err != nil {
		c.t.Fatal(err)
	}
	c.t.Cleanup(func() { sub.Unsubscribe() })
	return w
}

// decodeFrame reads a frame with whole messages: kind, sender, then each with its length before it.
func decodeFrame(frame []byte) (list []chain.Message) {
	if len(frame) == 0 || frame[0] != 1 {
		return nil
	}
	_, n := binary.Uvarint(frame[1:])
	for rest := frame[1+max(n, 0):]; len(rest) > 0; {
		size, n := binary.Uvarint(rest)
		if n <= 0 || uint64(len(rest)-n) < size {
			return list
		}
		m, err := chain.Decode(slices.Clone(rest[n : n+int(size)]))
		if err != nil {
			return list
		}
		list, rest = append(list, m), rest[n+int(size):]
	}
	return list
}

// wait waits for a message.
func (w *tap) wait(t testing.TB, what string, ok func(*overheard) bool) *overheard {
	t.Helper()
	timeout := time.After(patience)
	for at := 0; ; {
		w.mu.Lock()
		heard := w.heard
		w.mu.Unlock()
		for ; at < len(heard); at++ {
			if ok(&heard[at]) {
				return &heard[at]
			}
		}
		select {
		case <-w.more:
		case <-timeout:
			var text strings.Builder
			for i := range heard {
				text.WriteString("\n" + heard[i].String())
			}
			t.Fatalf("never heard on the wire: %s; but%s", what, text.String())
		}
	}
}

// tool runs one of the commands, and gives what it printed.
func tool(t testing.TB, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(command(t, name), args...)
	var problem strings.Builder
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v: %s%s", name, strings.Join(args, " "), err, out, problem.String())
	}
	return string(out)
}

// copyDir copies a data directory.
func copyDir(t testing.TB, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("copy %s: %v: %s", from, err, out)
	}
}
