// Package sim simulates a whole cluster out of the code that ships: some nodes with their disks, clients, and the network between
// them, in one thread and in virtual time. What a seed does, it does again. [Run] runs one seed.
//
//	make sim TIME=30m JOBS=2 LEDGER=docs/sim-ledger.jsonl
//	go run ./internal/sim/simulate -seed=17
//
// A seed that fails is made smaller (shrink.go): less time, fewer kinds of fault, fewer faults, clients and nodes, as long as the same
// promise is broken. What is left is told (story.go: what goes wrong, what the cluster decides, and what is about the locks concerned) with
// the command that replays it. The story is made by running once more, so that nobody pays for it who does not read it; so the arguments of
// tell must draw nothing. A [Recipe] says which run is meant; each fault of the driver draws from a source of its own, by its index, so
// that leaving one out changes the others as little as can be. A [Campaign] runs seeds on all cores and gives a [Ledger] of figures.
//
// # What is the code that ships
//
// bucket, bucket/chain and bucket/replicated; internal/journal on files in memory (files.go), down to the byte; arbiter/core; conf/shared; arbiter/plan while a
// node leads; broker/control/flow, enrol (how a process becomes its node), desk (what the copies are told), reign (what a
// leader does) and leave (how a node goes); broker/spread (how that reaches each bucket), broker/parking (what becomes of a request that its
// bucket does not take). Messages of the chain and frames of Raft are bytes on their way.
//
// desk.go, reign.go, enrol.go and leave.go are the simulator's copies of broker/control/teller.go, leading.go, starts.go and register.go,
// and leave.go: they put into an inbox, step, and carry out effects, and decide nothing.
//
// Clients are of three kinds, and there are up to three zones with the same users, names, inboxes and request ids in each: session clients run
// internal/machine, with its Road and Roam, over a connection to one server (client_session.go, client_wish.go: what their owners do);
// tools of these open sessions by hand and are granted by events (client_tool.go); simple ones have no session (client.go). broker/edge (sessions'
// tokens, keep-alives, requests for all buckets, closed connections) is the nodes' side. Requests and answers are bytes on their way, but for the simple clients.
//
// # What escapes the simulation
//
// Between the pure rooms stands code with goroutines. Its order is written here once more; each file says what it stands for. A
// mistake there is found only if it was made here too. These are the candidates for pure rooms of their own:
//
//	arb.go      arbiter/run.go, call.go (what carries out for core.Node.Turn, who waits for what)
//	process.go  broker/daemon.go, join.go; broker/control.begin (whether a cluster is founded)
//	shard.go    broker/shard.go, perform.go, tables.go, fork.go (batch, commit, openBuckets, fork)
//	tell.go     broker/copies.go (the tasks of package spread in the shards' queues)
//	links.go    broker/links.go (send, flush, receive)
//	request.go  broker/cell.go, park.go, pump.go, forward.go, queue.go (request, turn, unpark: who carries out what broker/parking decides)
//	edge.go     broker/pump.go (receive, prepare, dispatch), local.go, gather.go, collect.go (the rounds), system.go, perform.go (publish)
//	client_session.go, client_lanes.go  client/client.go (perform, receive), goroutines.go, lanes.go
//	client_nats.go     nats.go and the NATS server between clients and nodes: subjects and queue groups, who sees whom, pings, client/island.go's
//	                   questions; who tells clients of nodes that come and go (broker/announcer.go) is drawn at random
//	disk.go     arbiter/disk.go: a write is there whole or not at all, a flipped bit is found by the sums (bbolt itself is not here)
//	journal.go  broker/tables.go, Daemon.commit (openJournal, compactor)
//
// Not here at all: NATS itself (a message is lost, late or twice, an ordered link is a choice of the seed), enrolment with tokens, arbiters
// without a daemon, bbolt. Programs of two levels (conf/shared) run beside each other; as every format has one version yet, they differ in
// nothing but the level that they know (fault_program.go), and nodes that meet a message or a journal of a version or with a field that they
// do not know must refuse it and go on.
//
// # Time
//
// Every machine and client has a clock with a rate and an offset of its own; a crash of a machine begins its boot-time clock anew. Rates
// differ by less than 1/7, but in one seed of ten, where they go beyond: there only what the promises say without clocks is checked
// (tokens never come twice, requests have one effect, everything comes together again).
//
// # Faults
//
// Each seed draws which kinds there are and how often (mix.go), or one of the themes (theme.go): few faults that are dangerous together. There is
// what may happen to any message (network.go, links.go, damage.go, client.go), and what the driver does from time to time:
//
//	fault_process.go   processes killed (also within a write), stopped, slow; machines crashed, with what was not synced
//	fault_network.go   cuts of all forms, weak links
//	fault_disk.go, fault_olddisk.go  disks lost, old, full, failing, damaged; another node's identifier; a bucket's in-sync set gone at once
//	fault_clock.go     clocks
//	fault_operator.go, fault_program.go  settings, members, moves, hand-overs, splits, programs of two levels
//	fault_client.go, client_fault.go   clients
//
// In half of the seeds more goes wrong within milliseconds of a change of views (bursts), and machines come back as that is decided. A kind counts only when it had an effect: a cut when a
// message has met it, a flipped bit when it was found, a setting when it was changed, a stalled goroutine when it had something to do. The driver takes
// no more disks from the group of Raft than it can miss, and puts back old disks only where broker/control promises to notice.
//
// The disk of a machine: write(2) reaches the kernel, fsync the platters. A process that dies leaves what it wrote, or a part of its last write. A
// machine that dies keeps what was synced, and of the rest some pages, others zeroed or cut; names of files that were not synced may be as before. An fsync
// that failed leaves a hole that later ones do not fill. The end of a file that was cut off stays cut off, which is less than a disk may do.
//
// # What is checked
//
// What clients did and saw is a history (history.go, client_feed.go) that internal/check judges by the promises: who believes in what, tokens,
// what is kept and what is over, queues, repeated requests, zones, and an order for each lock in which a simple lock would answer the same.
// It is told when a view says that the end of a bucket's history may be lost (recovery). check.go knows what only the simulator can
// see: a bucket gives a token once, whatever the lock; one process answers for a bucket in an epoch, and none in an epoch
// that is over, or would if it were asked; an epoch has one view; all nodes apply the same commands, and have the same digest; no goroutine goes round and round. At the end everything
// is healed: all buckets have a primary that acts, all copies are equal, everybody is answered.
package sim
