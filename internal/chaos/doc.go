// Package chaos does its worst to real daemons and judges what their clients saw.
//
// A run is a cluster of three to five daemons, each a process in a network namespace of its own with a file system of its own, and
// client processes in namespaces too (internal/e2e/daemons makes them). The clients use locks in every way that there is, in two
// zones, and record what they ask, hear and believe (internal/check, times are CLOCK_BOOTTIME of the one machine). Meanwhile a
// written schedule of faults goes on; everything in it comes from a seed, so the same schedule can be run again. What real processes
// make of it differs from run to run: a schedule that found something once is repeated until it does again.
//
// The histories of all clients are merged and checked while the run goes on, piece by piece. After each round of faults everything
// is healed, and the cluster must come together: every node up, every bucket with all its copies, locks granted. In the end every
// client process must end by itself, which it does when each of its requests was answered or is over.
//
// # Faults
//
// schedule.go names them. Each is counted only when it really happened: a killed process was alive, a stopped one stands still, a
// cut has dropped packets, a proxy has delayed, damaged or reset something, a daemon with a full disk has ended, the clock that a
// node tells is away, an operator's request was carried out.
//
// What is done to all that goes between two hosts is done to direct links and lanes as well; link-cut and its like are about direct links
// alone, while the route works, so that messages take both ways and overtake each other. Clients hurry now and then, so that they have
// lanes. Some processes have a crowd, too: workers that share a client, whose requests go in bundles. A run counts links and lanes, how often they
// broke, and how many requests were passed on over direct links or came in bundles (ways.go, counted.go); without any of one kind it has failed.
//
// What cannot be done here, and is done by internal/sim: a machine that crashes with unsynced data (the kernel keeps what a killed
// process has written), bits that flip on disks, clocks of another rate. The wall clock is moved in the daemon's own code (internal/fault):
// another wall clock for one process needs another machine. Nodes talk TLS, so flipped bits between them break connections;
// between clients and daemons there is no TLS here, and what a proxy does there is never taken for an answer: rubbish, and then a reset.
// A client that is stopped is a pause beyond what the promise covers only if it acts when it wakes up without looking at its claim;
// these look, and the lock test of Jepsen's analysis of etcd (jepsen.go) has workers that do not.
//
// # Reading order
//
// schedule.go, run.go (a run and its rounds), open.go, step.go (faults), node.go, worker.go (processes), operate.go, observe.go (what the run
// sees of the cluster), splits.go, ways.go, counted.go, proxy.go; workload.go, claims.go, crowd.go, plain.go, bystander.go (what clients do), record.go, history.go, story.go,
// ledger.go; jepsen.go, store.go. The command is in cmd.
package chaos
