// Package plan decides for the leader of the control plane what is to be done: which views come next, which copies are
// sealed for that, which primaries hand over, and who votes. It is pure.
package plan
