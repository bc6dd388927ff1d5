// Package brokertest starts real daemons for tests: the whole broker with its embedded NATS server, on a free port of the
// loopback address, alone or as a cluster; and it has a proxy that stands before a daemon.
package brokertest
