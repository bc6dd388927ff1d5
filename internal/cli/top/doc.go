// Package top is the live view of `oclocks-cli top`: the locks with the longest queues, who holds them, who is next.
//
// What is shown is gathered from pages of `list` (gather.go), made into lines by a pure function (view.go) and shown by
// package live. A broker may have millions of locks, so the view looks at a bounded number of them and says when there are
// more.
//
// Read in this order: run.go, gather.go, view.go.
package top
