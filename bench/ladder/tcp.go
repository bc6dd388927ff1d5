package ladder

import (
	"bufio"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"time"

	"github.com/opencluster/oclocks/bench/rig"
)

// tcp are connections between the nodes, each made by the one with the lower number, which says who it is.
type tcp struct {
	n         *node
	addresses []string
	listener  net.Listener

	mu    sync.Mutex // of those that write, too
	conns map[uint64]net.Conn
	text  []byte
}

func newTCP(n *node, addresses []string) (*tcp, error) {
	listener, err := net.Listen("tcp", addresses[n.number-1])
	return &tcp{n: n, addresses: addresses, listener: listener, conns: make(map[uint64]net.Conn)}, err
}

// open makes the connections, in the background and as long as the process lives.
func (t *tcp) open() {
	go func() {
		for {
			conn, err := t.listener.Accept()
			if err != nil {
				return
			}
			go t.answer(conn)
		}
	}()
	for to := t.n.number + 1; to <= nodes; to++ {
		go t.dial(to)
	}
}

func (t *tcp) dial(to uint64) {
	for {
		conn, err := net.Dial("tcp", t.addresses[to-1])
		if err == nil {
			if err := binary.Write(conn, binary.BigEndian, t.n.number); err == nil {
				t.serve(to, conn)
			}
			conn.Close() // it has failed
		}
		<-time.After(rig.LookPause)
	}
}

func (t *tcp) answer(conn net.Conn) {
	defer conn.Close() // it has failed
	var from uint64
	if err := binary.Read(conn, binary.BigEndian, &from); err == nil {
		t.serve(from, conn)
	}
}

func (t *tcp) serve(other uint64, conn net.Conn) {
	t.mu.Lock()
	t.conns[other] = conn
	t.mu.Unlock()
	in := bufio.NewReaderSize(conn, 64<<10)
	var head [4]byte
	for {
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return
		}
		frame := make([]byte, binary.BigEndian.Uint32(head[:]))
		if _, err := io.ReadFull(in, frame); err != nil {
			return
		}
		if t.n.take(other, frame) != nil {
			return
		}
	}
}

// Send writes a frame, with its length before it.
func (t *tcp) Send(to uint64, frame []byte) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	conn := t.conns[to]
	if conn == nil {
		return false
	}
	t.text = binary.BigEndian.AppendUint32(t.text[:0], uint32(len(frame)))
	t.text = append(t.text, frame...)
	_, err := conn.Write(t.text)
	return err == nil
}
