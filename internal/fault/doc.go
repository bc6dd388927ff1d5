// Package fault has the fault points: places at which a test can make a real daemon go wrong on purpose.
//
// A daemon that is started with the environment variable OCLOCKS_FAULTS=FILE looks into that file at each of its fault
// points, so a test arms and disarms them while the daemon runs. Each line of the file is "name=value". Without the variable
// a point costs one comparison, and the daemon says in its log when it runs with it.
//
//	chain.corrupt=N      the next change that is sent to another node is damaged, the first N times that it is sent
//	chain.late=1         changes wait between the decision to send them and the network, and their shard with them
//	control.hold=1       views and changes of the control plane wait on their way to the copies; leases do not
//	clock.wall=N         the wall clock, where this daemon's own code reads it, is N seconds away (Wall)
package fault
