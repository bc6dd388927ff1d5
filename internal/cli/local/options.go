package local

import (
	"fmt"
	"io"
	"os"
	"time"
)

// MaxNodes is how many nodes one directory can have.
const MaxNodes = 50

// Distances of the ports of a node's listeners from that of its clients.
const (
	routeDistance = 100
	httpDistance  = 200
)

// Options says what to run.
type Options struct {
	Dir     string // of the cluster; made if it is missing
	Nodes   int    // 1 to MaxNodes; 0: those that Dir has, or 3
	Port    int    // node i serves clients at Port+i, and other nodes at Port+100+i
	HTTP    bool   // node i serves health and metrics at Port+200+i
	Restart bool   // start a node again that has ended by itself
	Daemon  string // path of oclocks-daemon

	Out     io.Writer        // a JSON line for each node that serves, then what to try
	Log     io.Writer        // what happens later
	Signals <-chan os.Signal // the first stops the nodes, the second kills them
	Start   time.Duration    // how long a node may take until it serves; 0: a minute
	Stop    time.Duration    // how long nodes may take to stop; 0: 20 s

	same time.Duration // 0: sameSignal
}

// defaultNodes is how many nodes a new cluster has.
const defaultNodes = 3

func (o *Options) validate() error {
	if o.Nodes < 0 || o.Nodes > MaxNodes {
		return fmt.Errorf("--nodes %d: expected 1 to %d", o.Nodes, MaxNodes)
	}
	const highest = 65535
	if most := highest - httpDistance - MaxNodes; o.Port < 1 || o.Port > most {
		return fmt.Errorf("--port %d: expected 1 to %d: node 1 serves clients at the next port, node 2 at the one after that", o.Port, most)
	}
	if o.Start == 0 {
		o.Start = time.Minute
	}
	if o.Stop == 0 {
		o.Stop = 20 * time.Second
	}
	if o.same == 0 {
		o.same = sameSignal
	}
	return nil
}
