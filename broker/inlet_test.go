package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/opencluster/oclocks/bucket/chain"
)

// frameOf is a frame of node 2 with an Append and an Ack for each of n buckets.
func frameOf(n int) []byte {
	frame := binary.AppendUvarint([]byte{frameBatch}, 2)
	for i := range uint32(n) {
		first, second := chain.Member{Node: 1}, chain.Member{Node: 2}
		for _, m := range []chain.Message{
			{Kind: chain.Append, Bucket: i, From: second, To: first, Changes: []chain.Change{{Epoch: 1, Seq: 1, Data: fmt.Append(nil, "change of ", i)}}},
			{Kind: chain.Ack, Bucket: i, From: second, To: first, Progress: []chain.Progress{{Member: second, Seq: uint64(i)}}},
		} {
			text := m.Encode(nil)
			frame = append(binary.AppendUvarint(frame, uint64(len(text))), text...)
		}
	}
	return frame
}

// What a frame brings is taken into the memory of what was taken before, and nothing of that is left in it.
func TestFramesAreTakenIntoTheSameMemory(t *testing.T) {
	in := &inlet{parts: make(map[uint64]*assembly)}
	work := newTask(taskChain, nil)
	take := func(frame []byte) {
		if from, err := in.decode(frame, func(_ uint64, m *chain.Message) { work.addMessage(m) }); err != nil || from != 2 {
			t.Fatal(from, err)
		}
	}
	for _, n := range []int{3, 1, 20, 2, 40, 5} {
		for i := range work.messages {
			work.messages[i].Reset()
		}
		work.messages = work.messages[:0]
		take(frameOf(n))
		if len(work.messages) != 2*n {
			t.Fatalf("%d messages of %d", len(work.messages), 2*n)
		}
		for i := range work.messages {
			bucket := i / 2
			m := &work.messages[i]
			got := fmt.Sprint(m.Kind, m.Bucket, len(m.Changes), len(m.Progress))
			want := fmt.Sprint(chain.Append, bucket, 1, 0)
			if i%2 == 1 {
				want = fmt.Sprint(chain.Ack, bucket, 0, 1)
			}
			if got != want || i%2 == 0 && string(m.Changes[0].Data) != fmt.Sprint("change of ", bucket) {
				t.Fatalf("message %d is %s %q, want %s", i, got, m.String(), want)
			}
		}
	}
	frame := frameOf(10)
	if got := testing.AllocsPerRun(100, func() {
		for i := range work.messages {
			work.messages[i].Reset()
		}
		work.messages = work.messages[:0]
		take(frame)
	}); got > 1 { // the function of the test that takes
		t.Errorf("%v allocations for a frame", got)
	}
}

// What comes over a direct link is its node's. Who speaks in another one's name is not listened to any longer, and what he says goes
// nowhere; what is damaged ends no link.
func TestAnothersName(t *testing.T) {
	d := &Daemon{log: slog.New(slog.DiscardHandler), shards: make([]*shard, 1)}
	d.metrics = newMetrics(d)
	d.count.Store(1)
	s := newShard(d, 0)
	defer s.timer.Close()
	d.shards[0] = s
	message := (&chain.Message{Kind: chain.Hello, To: chain.Member{Node: 1, Inc: 1}}).Encode(nil)
	frame := func(from uint64) []byte {
		f := binary.AppendUvarint([]byte{frameBatch}, from)
		f = binary.AppendUvarint(f, uint64(len(message)))
		return append(f, message...)
	}
	in := (&links{d: d}).inlet(2)
	for _, other := range []uint64{0, 1, 3} {
		if err := in.takeDirect(frame(other)); !errors.Is(err, errSender) || !s.queue.empty() {
			t.Errorf("in the name of node %d: %v", other, err)
		}
	}
	if err := in.takeDirect(frame(2)[:10]); err != nil || !s.queue.empty() {
		t.Errorf("damaged: %v", err)
	}
	if err := in.takeDirect(frame(2)); err != nil || s.queue.empty() {
		t.Errorf("its own: %v", err)
	}
}
