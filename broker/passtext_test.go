package broker

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/opencluster/oclocks/bucket"
	"github.com/opencluster/oclocks/subjects"
)

func passedTask() *task {
	t := new(task)
	t.req = subjects.Request{Op: subjects.OpAcquire, Name: "orders/4711", Session: "token", Number: 7, Done: 3, Take: 1, Holder: "me"}
	t.in = bucket.Input{Zone: "shop", User: "alice", Reply: "_INBOX.alice.1", Session: bucket.Session{
		ID: "abcdefghijk", Incarnation: 1 << 40, Lease: 10 * time.Second, Conn: bucket.Conn{Server: "NB3K", CID: 99}}}
	t.trip.Hops = 2
	return t
}

func TestARequestOnItsWayToAnotherNode(t *testing.T) {
	for name, change := range map[string]func(t *task){
		"with a session": func(*task) {},
		"without":        func(t *task) { t.in.Session, t.req.Session, t.req.Number, t.req.Done = bucket.Session{}, "", 0, 0 },
		"nothing in it":  func(t *task) { t.in.Reply, t.in.User, t.in.Zone, t.req.Holder = "", "", "", "" },
	} {
		t.Run(name, func(t *testing.T) {
			sent := passedTask()
			change(sent)
			r := passReader{rest: append(sent.appendTo(nil), "rest"...)}
			got, zone, body := r.task()
			if r.err != nil || string(r.rest) != "rest" {
				t.Fatalf("%v, %q left", r.err, r.rest)
			}
			if zone != sent.in.Zone || got.in.User != sent.in.User || got.in.Reply != sent.in.Reply || got.in.Session != sent.in.Session ||
				got.req.Op != sent.req.Op || got.trip.Hops != 3 || !bytes.Equal(body, sent.req.AppendJSON(nil)) {
				t.Errorf("got %q %+v %+v %q", zone, got.in, got.trip, body)
			}
			whole := sent.appendTo(nil)
			for n := range whole {
				cut := passReader{rest: whole[:n]}
				if cut.task(); !errors.Is(cut.err, errPassage) {
					t.Fatalf("%d of %d bytes: %v", n, len(whole), cut.err)
				}
			}
		})
	}
}

// What another node sends is read whole or not at all, whatever it is.
func FuzzPassage(f *testing.F) {
	f.Add(append([]byte{framePass, passAsk, 1}, passedTask().appendTo(nil)...))
	f.Add([]byte{framePass, passAnswer, 1, 0, 0, 2, '{', '}', passDone, 2, passBack, 3})
	f.Add([]byte{framePass, 9, 1})
	f.Fuzz(func(t *testing.T, frame []byte) {
		r := passReader{rest: frame}
		for len(r.rest) > 0 && r.err == nil {
			before := len(r.rest)
			switch r.byte() {
			case passAsk:
				r.number()
				r.task()
			default:
				r.text()
				r.bytes()
			}
			if r.err == nil && len(r.rest) >= before {
				t.Fatal("it stands still")
			}
		}
	})
}

// Those with one reply subject are answered in the order of their bucket, and any of them can be taken out. Other buckets answer in an
// order of their own.
func TestTwinsAreKeptApart(t *testing.T) {
	tasks := []*task{passedTask(), passedTask(), passedTask()}
	elsewhere := passedTask()
	elsewhere.bucket = 1
	key := asker{"shop", "_INBOX.alice.1", 0}
	for out := range tasks {
		s := &shard{passed: map[asker]*task{key: tasks[0], elsewhere.asker(): elsewhere}}
		tasks[0].twin, tasks[1].twin, tasks[2].twin = tasks[1], tasks[2], nil
		if !s.forget(tasks[out]) || s.forget(tasks[out]) {
			t.Fatalf("%d is not there once", out)
		}
		for i, want := range tasks {
			if i == out {
				continue
			}
			if got := s.unfollow(key); got != want {
				t.Errorf("without %d: %p comes, not %d", out, got, i)
			}
		}
		if s.unfollow(key) != nil || s.unfollow(asker{"shop", "_INBOX.alice.1", 1}) != elsewhere || len(s.passed) > 0 {
			t.Errorf("left: %v", s.passed)
		}
	}
}

// A client may use one reply subject for requests on several buckets, of which one shard has several. An answer ends the request of its
// own bucket in the passage, whichever came first.
func TestAnAnswerIsForARequestOfItsBucket(t *testing.T) {
	s := &shard{passed: make(map[asker]*task)}
	p := &passage{d: &Daemon{metrics: newMetrics(&Daemon{})}}
	z := &zone{d: p.d, name: "shop"}
	for number := range uint32(2) {
		asked := passedTask()
		asked.zone, asked.via, asked.bucket, asked.number = z, p, number, 10+uint64(number)
		s.keep(asked)
	}
	s.reply(z, 1, &bucket.Effect{Kind: bucket.Reply, Zone: "shop", To: "_INBOX.alice.1", Body: noPrimary()})
	r := passReader{rest: p.frame[1:]}
	if kind, number := r.byte(), r.number(); kind != passAnswer || number != 11 {
		t.Errorf("the answer of bucket 1 is for request %d", number)
	}
}
