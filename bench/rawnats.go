package main

import (
	"fmt"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/opencluster/oclocks/bench/rig"
)

// echo is a plain NATS server with a responder in the process that sends back what it gets: the least that a request and
// its reply can cost here. Two of them are the yardstick for a pair of acquire and release.
type echo struct {
	server *server.Server
	conn   *nats.Conn
}

func startEcho() (*echo, error) {
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true})
	if err != nil {
		return nil, fmt.Errorf("make a plain NATS server: %w", err)
	}
	s.Start()
	e := &echo{server: s}
	if !s.ReadyForConnections(rig.Patience) {
		e.stop()
		return nil, fmt.Errorf("the plain NATS server is not ready after %v", rig.Patience)
	}
	if e.conn, err = nats.Connect("", nats.InProcessServer(s)); err != nil {
		e.stop()
		return nil, fmt.Errorf("connect to the plain NATS server: %w", err)
	}
	_, err = e.conn.Subscribe("echo", func(m *nats.Msg) {
		if err := m.Respond(m.Data); err != nil {
			e.conn.Close() // the workers' requests fail then
		}
	})
	if err == nil {
		err = e.conn.Flush()
	}
	if err != nil {
		e.stop()
		return nil, fmt.Errorf("subscribe to echo: %w", err)
	}
	return e, nil
}

func (e *echo) url() string { return e.server.ClientURL() }

func (e *echo) pair(nc *nats.Conn, _ int) error {
	for range 2 {
		if _, err := nc.Request("echo", []byte(rig.AcquireText), rig.Patience); err != nil {
			return fmt.Errorf("echo: %w", err)
		}
	}
	return nil
}

func (e *echo) stop() {
	if e.conn != nil {
		e.conn.Close()
	}
	e.server.Shutdown()
	e.server.WaitForShutdown()
}
