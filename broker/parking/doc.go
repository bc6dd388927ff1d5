// Package parking decides what becomes of a request that its bucket has not taken on this node: it is passed on to the primary, its
// caller is told where to ask, it is put off for a moment, or it is parked: it stands at the bucket until that can be asked or its
// time is over. It is pure: no I/O, no clock, no goroutine, no random number. The daemon's shards and the simulator both run it.
// What a request is, is theirs.
//
// # What a caller must do
//
//  1. Have one [Lot] for each shard and one [Place] for each bucket, and keep a [Trip] with each request. Trip.Hops comes with
//     the request; the rest of a Trip stays on its node.
//  2. Give a request to its bucket. If that does not take it: [Lot.Turn], and do what the [Way] says.
//  3. Once in each batch in which the bucket had a part, if something stands at it: [Lot.Look], and carry out what that gives.
//  4. Have the bucket take part in a batch at [Place.Next] at the latest.
//  5. Before the node stops: [Lot.Close] for each place.
//
// Times are boot time in nanoseconds.
//
// # Why
//
// A bucket that changes hands has no primary for as long as a fail-over takes, which is less than [Time]. A request that comes
// meanwhile would be refused and come again at once, from everybody; so it stands. What stands costs nothing: a place is looked at
// only when something else keeps its requests from their turn than before, or the oldest one's time is over.
//
// Each zone has room of its own, so that a flood in one gets nobody else's request refused meanwhile. What is given back goes in
// front of all that its zone has in the queue, in its order; the zones take turns there. A request that is given back and parked
// again keeps its time, but stands behind those that have come in between, and is not given up before them: so it stands for less
// than twice [Time].
//
// A request that was passed on twice is put off when this node is not the primary either: one of the two has not heard yet
// who is, and they would pass it to and fro until it has gone [MaxHops] ways.
package parking
