// Package client is the Go client of oclocks: locks that are held by one process of many, with fencing tokens, leases and
// queues, over NATS.
//
//	c, err := client.Connect(ctx, "")
//	…
//	m := c.Mutex("orders/4711")
//	claim, err := m.Lock(ctx)
//	…
//	defer m.Unlock(context.Background())
//	write(claim.Token(), …) // the resource refuses tokens lower than the highest that it has seen
//
// # What a lock is worth
//
// A lock has a lease: if the broker hears nothing from this client for that long, it gives the lock to the next in the
// queue. The client stops to trust its lock earlier, 3/4 of the lease after the newest message that the broker is known to
// have heard, counted on a clock that goes on while the machine is suspended. So two clients do not believe in one lock at
// one time as long as their clocks' rates differ by less than 1/7. What a process does after its trust ended is its own
// affair: watch [Claim.Done] or work under [Claim.Context], and let the resource check [Claim.Token], which rises with
// every grant of a name. A pause of the whole process between looking at the claim and using the resource is caught by the
// token alone.
//
// A lock is Held, Suspect (a keep-alive is overdue, the trust goes on), Lost or Released. A lost lock does not come back;
// it wants its Unlock like any other, which confirms to the broker that its holder has stopped.
//
// # Sessions
//
// The first lock opens a session, which is kept alive with one message for each node and half lease, however many locks it
// has. After a reconnect the session comes back with the same identity: locks are kept, waiters keep their places. Locks
// [WithStatic] do not depend on the session: they live until they are released or their time limit is over, which the
// client renews at its half.
//
// # Nodes that come and go
//
// A lock belongs to a bucket, and each bucket has a primary among the nodes of the cluster. When that one dies, another takes
// over after about a second; locks stay held, waiters keep their places and are granted by the new primary, and requests
// wait for it without an error. When the node dies that the client is connected to, the client goes to another one at once
// (those that it was given and those that the cluster tells of), which takes milliseconds if the connection breaks and about
// two seconds if the node just falls silent. It also leaves a node that answers but is cut off from the others, or that does
// not reach a bucket's primary for longer than a fail-over takes, and rests a while if that did not help. See [WithNearest],
// [Client.Nearest] and [Client.OnServers].
//
// # Lanes
//
// A client that asks for many locks connects to their nodes as well, so that requests take the shortest way: such a connection is a
// lane. Nothing depends on lanes: the session, its keep-alives and events stay on the first connection ([Client.Conn]), which alone
// counts for what happens when a connection is closed ([WithGrace]); what a lane does not answer in time is asked again there. Lanes have
// the options of the first connection, whose credentials and dialer may be called for several connections at a time; the caller's
// other handlers are not called for them. See [WithOneConnection].
//
// # Bundles
//
// Requests of many goroutines that go to one node at the same moment go in one message, and their answers come back together, if the node
// says that it can do so. Who calls Lock or Unlock while other requests are under way lets the goroutines run first that are ready to, and
// then sends what they have brought along with its own; nobody waits for that, and a single goroutine sends at once. Bundles are an
// optimisation, and nothing rests on them: what is repeated goes by itself, on the way that leads to the bucket's primary whoever it is.
//
// A process that needs many sessions (one for each of its own users, say) makes a client for each over one connection ([WithConn]): then
// their keep-alives are due at the same moments, a little earlier than half a lease at the first, and those for one node share messages.
//
// # Requests
//
// Every request that changes something carries a number and takes effect at most once, so the client repeats it through
// reconnects, restarts of the broker and lost messages until its context ends. One of those who ask over a connection that
// stands still with full buffers may be kept for up to 1.4 s beyond that, by nats.go. Errors are [*subjects.Refusal] (errors.As)
// wrapped with what was being done, and match the sentinels of this package (errors.Is).
//
// Two goroutines of one client exclude each other like two processes do: the broker is not re-entrant.
//
// # Reading order
//
// connect.go and options.go, client.go (the two goroutines around package machine, which does the thinking), outlet.go, bundle.go,
// company.go and receive.go (what goes out and comes in), claim.go,
// mutex.go, rwmutex.go, semaphore.go, locker.go (drop-ins for package sync), operations.go, watch.go, servers.go, lanes.go, dialer.go, road.go
// and island.go (which server is near, where to reconnect, and when to leave one that is cut off).
package client
