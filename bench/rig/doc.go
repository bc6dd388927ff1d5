// Package rig is what measurements stand on, of oclocks and of others: processes, a cluster of daemons, plain NATS servers as
// the yardstick, processor time and memory, quantiles. It measures nothing itself.
//
// Read process.go first, then daemons.go (with zones.go, metrics.go and pauses.go) and plain.go; build.go, usage.go and quantile.go stand
// alone.
package rig
