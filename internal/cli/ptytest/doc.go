// Package ptytest gives tests a terminal: a pseudo terminal that a process is started on, as if a user sat there. It is
// for tests only and knows nothing of locks.
package ptytest
