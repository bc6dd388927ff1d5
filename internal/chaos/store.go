package chaos

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/opencluster/oclocks/internal/e2e/daemons"
)

// storeRequest is what a process asks of the store: to read the set, or to write it.
type storeRequest struct {
	Worker  int    `json:"worker"`
	Token   uint64 `json:"token"`
	Write   bool   `json:"write,omitempty"`
	Element int    `json:"element,omitempty"` // that is new in Set
	Set     []int  `json:"set,omitempty"`
}

// storeAnswer answers it.
type storeAnswer struct {
	Set     []int `json:"set,omitempty"`
	Refused bool  `json:"refused,omitempty"` // for its token
	Over    bool  `json:"over,omitempty"`    // the test is: nothing was done
}

// store has the shared set. If it is fenced it refuses every request, also to read, whose token is lower than the highest that it
// has seen: a reader that is overtaken would write what it read before.
type store struct {
	listener net.Listener
	fenced   bool
	every    time.Duration // between pauses
	pause    time.Duration

	mu        sync.Mutex
	set       []int
	highest   uint64
	acked     []int
	refused   int
	pauses    int
	paused    time.Time // the last one
	over      bool
	processes map[int]*daemons.Process
	conns     sync.WaitGroup
}

func newStore(fenced bool, every, pause time.Duration) (*store, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("open the store: %w", err)
	}
	s := &store{listener: l, fenced: fenced, every: every, pause: pause, paused: time.Now(), processes: make(map[int]*daemons.Process)}
	s.conns.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.conns.Go(func() { s.serve(conn) })
		}
	})
	return s, nil
}

// serve answers one process.
func (s *store) serve(conn net.Conn) {
	defer conn.Close()
	in, out := json.NewDecoder(conn), json.NewEncoder(conn)
	for {
		var req storeRequest
		if err := in.Decode(&req); err != nil {
			return
		}
		if err := out.Encode(s.answer(&req)); err != nil {
			return
		}
	}
}

func (s *store) answer(req *storeRequest) *storeAnswer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return &storeAnswer{Over: true}
	}
	if s.fenced && req.Token < s.highest {
		s.refused++
		return &storeAnswer{Refused: true}
	}
	s.highest = max(s.highest, req.Token)
	if req.Write {
		s.set = req.Set
		s.acked = append(s.acked, req.Element)
		return &storeAnswer{}
	}
	if p := s.processes[req.Worker]; p != nil && time.Since(s.paused) >= s.every {
		s.paused = time.Now()
		s.pauses++
		pauseOf(p, s.pause) // it holds the lock, and has not written
	}
	return &storeAnswer{Set: s.set}
}

// hire starts the processes.
func (s *store) hire(cfg JepsenConfig, urls []string) error {
	for i := 1; i <= cfg.Workers; i++ {
		w := &jepsenWorker{Number: i, Store: s.listener.Addr().String(), URLs: strings.Join(urls, ","), TTL: cfg.TTL}
		p, err := w.spawn(cfg.Dir)
		if err != nil {
			return err
		}
		s.mu.Lock()
		s.processes[i] = p
		s.mu.Unlock()
	}
	return nil
}

// dismiss tells the processes that it is over, and waits for their end.
func (s *store) dismiss() error {
	s.mu.Lock()
	s.over = true
	all := s.processes
	s.mu.Unlock()
	deadline := time.After(patience)
	for i, p := range all { // order: each is waited for
		select {
		case <-p.Ended():
			if p.Wait(); p.Cmd.ProcessState.ExitCode() != 0 {
				return fmt.Errorf("process %d: %s", i, p.Cmd.ProcessState)
			}
		case <-deadline:
			return fmt.Errorf("process %d does not end", i)
		}
	}
	return nil
}

// figures counts.
func (s *store) figures() *JepsenFigures {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := make(map[int]bool)
	for _, e := range s.set {
		there[e] = true
	}
	f := &JepsenFigures{Fenced: s.fenced, Pauses: s.pauses, Acknowledged: len(s.acked), Refused: s.refused}
	for _, e := range s.acked {
		if !there[e] {
			f.Lost++
		}
	}
	return f
}

// close ends everything.
func (s *store) close() {
	s.listener.Close()
	s.mu.Lock()
	all := s.processes
	s.mu.Unlock()
	for _, p := range all { // order: all are ended
		p.Kill()
	}
	s.conns.Wait()
}

// storeConn is a process's connection to the store.
type storeConn struct {
	conn net.Conn
	in   *json.Decoder
	out  *json.Encoder
}

func dialStore(address string) (*storeConn, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("connect to the store: %w", err)
	}
	return &storeConn{conn, json.NewDecoder(conn), json.NewEncoder(conn)}, nil
}

func (c *storeConn) close() { c.conn.Close() }

// ask asks the store; when it is gone, it is over.
func (c *storeConn) ask(req *storeRequest) (*storeAnswer, error) {
	if err := c.out.Encode(req); err != nil {
		return nil, fmt.Errorf("ask the store: %w", err)
	}
	answer := &storeAnswer{}
	if err := c.in.Decode(answer); errors.Is(err, io.EOF) {
		return &storeAnswer{Over: true}, nil
	} else if err != nil {
		return nil, fmt.Errorf("ask the store: %w", err)
	}
	return answer, nil
}
