package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// serveStreams is the process of one NATS server with JetStream: number, client address, route address, all route addresses,
// directory.
func serveStreams(args []string) error {
	if len(args) != 5 {
		return errors.New("expected a number, two addresses, a list and a directory")
	}
	client, err := net.ResolveTCPAddr("tcp", args[1])
	if err != nil {
		return err
	}
	route, err := net.ResolveTCPAddr("tcp", args[2])
	if err != nil {
		return err
	}
	opts := &server.Options{ServerName: "streams-" + args[0], Host: "127.0.0.1", Port: client.Port, JetStream: true, StoreDir: args[4],
		Cluster: server.ClusterOpts{Name: "streams", Host: "127.0.0.1", Port: route.Port}}
	for other := range strings.SplitSeq(args[3], ",") {
		if other != args[2] {
			opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats", Host: other})
		}
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return fmt.Errorf("make a NATS server: %w", err)
	}
	s.Start()
	if !s.ReadyForConnections(streamsReady) {
		return fmt.Errorf("the NATS server is not ready after %v", streamsReady)
	}
	fmt.Fprintln(os.Stderr, streamsServing)
	s.WaitForShutdown()
	return nil
}
