// Package shared is the configuration that all nodes of a cluster share, as a pure state machine: the nodes, the settings,
// the zones with their keys and users, and the view of each bucket.
package shared
