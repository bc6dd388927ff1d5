// Package check knows what oclocks promises and nothing of how it is kept. It is fed with a history of events, each as one client
// saw it, and tells where the history breaks a promise. The simulator feeds it while it runs; recordings of real processes are
// merged and fed afterwards.
//
//	k := check.New(check.Options{})
//	k.Add(&check.Event{At: 10, Kind: check.Ask, Op: subjects.OpAcquire, Zone: "z", Client: "a", Request: "1", Name: "x", TTL: time.Second})
//	k.Add(&check.Event{At: 20, Kind: check.Answer, Client: "a", Request: "1", Code: 200, Token: 7, Ticket: 1, Key: 99, TTL: time.Second})
//	k.Add(&check.Event{At: 20, Kind: check.Believe, Zone: "z", Client: "a", Name: "x", Token: 7, Until: 10 + 750_000_000})
//	…
//	k.End(now, true)
//	for _, v := range k.Violations() { … }
//
// # The history
//
// All events of a history have their time from one clock, in nanoseconds, and are added in the order of time. Who records stamps an Ask
// (and what ends a belief) before it is sent (or acted on), and an Answer after it came, so that what the history puts in an order
// really happened in that order. What is not known is not concluded from: a request without an answer may have had its effect or
// not, and may have it yet, until its client gives it up or dies, and from then on too.
//
// A client has one zone, and a name that no other client of the history has. A request is what a client wants, however often it is
// sent; each Answer that arrives is told, repeated ones too. Event says which fields each kind has.
//
// # What is checked
//
// The numbers are those of DESIGN, section 7; each Violation names its Promise.
//
//	exclusion    1  the intervals in which clients believe to hold: exclusive alone, shared with shared, semaphores up to their slots
//	tokens       2  of one lock: higher than all that anybody was told before the request was sent; never given twice
//	kept         3  a hold stays while its client may believe in it; one without a limit until it is given back
//	over         3  what was released, closed, cancelled, forced or lost does not come back
//	queue        5  tickets in the order of requests, grants in the order of tickets; nobody is overtaken or waits in vain
//	wait         5  a wait is not over before its time; no request is cancelled that nobody cancelled
//	once         6  a request has one effect, and is answered the same again
//	zones        7  nothing of one zone is seen or has an effect in another
//	linear       –  there is an order of all requests for one lock, in which a simple lock would give the same answers (porcupine)
//
// What these allow, because the promises say so: the end of a bucket's history may be lost in a recovery (Doubt), a bucket may give nothing for a moment (Withheld), a force with now
// takes the lock from somebody who believes in it, a grace that is shorter than the lease gives up exclusion when the connection
// breaks; and where clocks are beyond what was promised (Options.Wild), nothing is concluded from times.
//
// # Memory
//
// What can no longer matter is forgotten: requests and holds that are over, after Options.Keep. What stays is a record for each name and
// zone, and for each hold that somebody may still have.
//
// # Reading order
//
// event.go (the history), options.go, check.go (Add), ask.go (requests and answers), belief.go, grant.go, ending.go, queue.go, repeat.go,
// zone.go (what is seen), linear.go and model.go (porcupine), forget.go; file.go (recordings), merge.go.
package check
