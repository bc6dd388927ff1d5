// Package sim simulates a whole cluster out of the code that ships: some nodes with their disks, clients, and the network between
// them, in one thread and in virtual time. What a seed does, it does again. [Run] runs one seed.
//
//	go test ./internal/sim -run TestSim -seeds=1000 -start=1 -goon -v
//
// A seed that fails prints what was promised and not kept, the last events, and the command that replays it.
//
// # What is the code that ships
//
// bucket, bucket/chain and bucket/replicated with the records of their journals; arbiter/core; conf/shared; arbiter/plan while a
// node leads; broker/control/flow, enrol (how a process becomes its node), desk (what the copies are told) and reign (what a
// leader does). Messages of the chain and frames of Raft are bytes on their way.
//
// desk.go, reign.go and enrol.go are the simulator's copies of broker/control/teller.go, leading.go, starts.go and register.go: they
// put into an inbox, step, and carry out effects, and decide nothing.
//
// # What escapes the simulation
//
// Between the pure rooms stands code with goroutines. Its order is written here once more; each file says what it stands for. A
// mistake there is found only if it was made here too. These are the candidates for pure rooms of their own:
//
//	arb.go      arbiter/run.go, call.go (turn, carryOut, apply, begin)
//	process.go  broker/daemon.go, join.go; broker/control.begin (whether a cluster is founded)
//	shard.go    broker/shard.go, perform.go, tables.go, fork.go (batch, commit, openBuckets, fork)
//	tell.go     broker/copies.go, adopt.go
//	links.go    broker/links.go (send, flush, receive)
//	request.go  broker/cell.go, pump.go, forward.go (request, elsewhere, park, unpark, due)
//	disk.go     internal/journal: a list of records of which a beginning survives; arbiter/disk.go
//
// Not here at all: NATS itself (a message is lost, late or twice, an ordered link is a choice of the seed), the client's session
// machine (internal/machine is closed to this folder), sessions, keep-alives, connection holds, reclaim, cancel, force, lists,
// several zones, enrolment with tokens, arbiters without a daemon, rolling upgrades, full disks, failing fsyncs, bit flips in journals.
//
// # Time
//
// Every machine and client has a clock with a rate and an offset of its own; a crash of a machine begins its boot-time clock anew. Rates
// differ by less than 1/7, but in one seed of ten, where they go beyond: there only what the promises say without clocks is checked
// (tokens never come twice, requests have one effect, everything comes together again).
//
// # Faults
//
// Each seed draws which kinds there are and how often (mix.go): what may happen to a message (network.go, links.go), what the driver
// does from time to time (fault.go, fault_disk.go). Each counts how often it really happened. The driver takes no more disks from the
// group of Raft than it can miss, and puts back old disks only where broker/control promises to notice.
//
// # What is checked
//
// check.go knows what clients were told and what was committed, and nothing else: clients believe in an exclusive lock one at a time
// (from their own sending, 3/4 of the limit); tokens of a lock rise and never come twice; grants follow the tickets; a request has one
// effect and is answered the same again; what was granted without a limit stays, what was released does not come back, unless a view
// said that the bucket's history may have lost its end (recovery); one process answers for a bucket in an epoch, and none in an epoch
// that is over; all nodes apply the same commands, and have the same digest; no goroutine goes round and round. At the end everything
// is healed: all buckets have a primary that acts, all copies are equal, everybody is answered.
package sim
