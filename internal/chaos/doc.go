// Package chaos does its worst to real daemons.
package chaos
