// Package brokertest starts real daemons for tests: the whole broker with its embedded NATS server, on a free port of
// the loopback address.
package brokertest
