// Package ask asks people on a terminal for what a command line left out.
package ask
