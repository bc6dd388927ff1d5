package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/opencluster/oclocks/bench/rig"
)

// serveStreams is the process of one NATS server with JetStream: number, client address, route address, all route addresses,
// directory.
func serveStreams(args []string) error {
	if len(args) != 5 {
		return errors.New("expected a number, two addresses, a list and a directory")
	}
	s, err := rig.StartNATS("streams", args, &server.Options{JetStream: true, StoreDir: args[4]})
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, streamsServing)
	s.WaitForShutdown()
	return nil
}
