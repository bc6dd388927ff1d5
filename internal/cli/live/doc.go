// Package live shows what changes: on a terminal it draws each frame over the one before, elsewhere it prints one after the
// other. What a frame is, is its caller's business.
//
// Read in this order: live.go, screen.go.
package live
