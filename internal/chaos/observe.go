package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/opencluster/oclocks/internal/check"
	"github.com/opencluster/oclocks/subjects"
)

// What the run itself sees of the cluster. It is at the hub, which no cut separates from a node.

// askTime bounds one question.
const askTime = 1500 * time.Millisecond

// conn is a connection to one node and no other.
func (n *node) conn() (*nats.Conn, error) {
	n.looking.Lock()
	defer n.looking.Unlock()
	if n.nc != nil {
		return n.nc, nil
	}
	nc, err := nats.Connect("nats://"+n.Listen, nats.IgnoreDiscoveredServers(), nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond),
		nats.Timeout(askTime), nats.RetryOnFailedConnect(true), nats.ReconnectBufSize(-1), nats.PingInterval(time.Second), nats.MaxPingsOutstanding(2),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", n.Name, err)
	}
	n.nc = nc
	return nc, nil
}

// question asks one node.
func (n *node) question(ctx context.Context, op, body string) ([]byte, error) {
	nc, err := n.conn()
	if err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	msg, err := nc.RequestWithContext(bounded, "locks."+op+".anyone", []byte(body))
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w", n.Name, err)
	}
	return msg.Data, nil
}

// cluster asks one node about the whole: about all buckets, or only those that are not as they should be.
func (n *node) cluster(ctx context.Context, buckets string) (*subjects.Cluster, error) {
	text, err := n.question(ctx, "cluster", buckets)
	if err != nil {
		return nil, err
	}
	all := &subjects.Cluster{}
	if err := all.DecodeJSON(text); err != nil {
		return nil, fmt.Errorf("ask %s: %w", n.Name, err)
	}
	return all, nil
}

// settled says what keeps the cluster from being whole, as any of its nodes sees it.
func (r *run) settled(ctx context.Context) error {
	members := r.members()
	for _, n := range members {
		all, err := n.cluster(ctx, "")
		if err != nil {
			return err
		}
		up := 0
		for _, m := range all.Nodes {
			if m.Status == "up" && m.Answered {
				up++
			}
		}
		if up != len(members) || len(all.Nodes) != up || all.Leader == 0 {
			return fmt.Errorf("%s sees %d nodes, %d of them up, there should be %d, and leader %d", n.Name, len(all.Nodes), up, len(members), all.Leader)
		}
		if len(all.Buckets) > 0 {
			text, err := json.Marshal(all.Buckets[0])
			return errors.Join(err, fmt.Errorf("%s sees %d buckets that are not as they should be, the first is %s", n.Name, len(all.Buckets)+all.More, text))
		}
	}
	return nil
}

// redundant says why a node cannot be lost for ever now.
func (r *run) redundant(ctx context.Context) error {
	members := r.members()
	for _, n := range members {
		if !n.runs() {
			return fmt.Errorf("%s is not alive", n.Name)
		}
	}
	all, err := members[0].cluster(ctx, "")
	if err != nil {
		return err
	}
	if all, err = members[0].cluster(ctx, fmt.Sprintf(`{"buckets":"0-%d"}`, all.Total-1)); err != nil {
		return err
	}
	voters := 0
	for _, m := range all.Nodes {
		if m.Status != "up" || !m.Answered {
			return fmt.Errorf("node %d is %s", m.Number, m.Status)
		}
		if m.Voter {
			voters++
		}
	}
	if voters < 3 {
		return fmt.Errorf("the control plane has %d voters, so none of them may lose its disk", voters)
	}
	for i := range all.Buckets {
		if b := &all.Buckets[i]; b.InSync < 2 || b.Recovery {
			return fmt.Errorf("bucket %d has no second copy that counts", b.Bucket)
		}
	}
	return nil
}

// wallOf is what a node says the time is.
func (r *run) wallOf(n *node) (time.Time, error) {
	text, err := n.question(context.Background(), "ping", "")
	if err != nil {
		return time.Time{}, err
	}
	var pong subjects.Pong
	if err := pong.DecodeJSON(text); err != nil {
		return time.Time{}, fmt.Errorf("ask %s: %w", n.Name, err)
	}
	return time.UnixMilli(pong.Now), nil
}

// progress waits until every client process has been granted locks since.
func (r *run) progress(ctx context.Context) error {
	before := r.grants()
	for {
		if r.grants() >= before+20*len(r.workers) {
			return nil
		}
		if !sleep(ctx, 50*time.Millisecond) {
			return fmt.Errorf("the clients were granted only %d locks since all nodes are there", r.grants()-before)
		}
	}
}

func (r *run) grants() int {
	r.tapes.Lock()
	defer r.tapes.Unlock()
	return r.history.checker.Stats().Grants
}

// doubts looks for recoveries, until ctx ends: what was answered for a bucket before may be lost then, as far as the promises allow it, and
// what the buckets have that it was split into, if they may not have begun.
func (r *run) doubts(ctx context.Context) {
	for {
		for _, n := range r.members() {
			if n.runs() {
				r.doubt(ctx, n)
			}
		}
		if !sleep(ctx, 150*time.Millisecond) {
			return
		}
	}
}

func (r *run) doubt(ctx context.Context, n *node) {
	bounded, cancel := context.WithTimeout(ctx, 400*time.Millisecond)
	defer cancel()
	all, err := n.cluster(bounded, "")
	if err != nil {
		return
	}
	defer r.splits.seen(all) // a recovery that is seen for the first time may have come before
	for i := range all.Buckets {
		b := &all.Buckets[i]
		key := fmt.Sprintf("%d of %d in epoch %d", b.Bucket, all.Total, b.Epoch)
		r.mu.Lock()
		known := r.doubted[key]
		r.doubted[key] = r.doubted[key] || b.Recovery
		r.mu.Unlock()
		if b.Recovery && !known {
			r.note("%s sees a recovery: bucket %s", n.Name, key)
			for _, lost := range append([]uint32{b.Bucket}, r.splits.hangOn(b.Bucket, all.Total)...) {
				r.own.add(check.Event{Kind: check.Doubt, Bucket: lost, Buckets: all.Total})
			}
		}
	}
}
