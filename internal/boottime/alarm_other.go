//go:build !linux

package boottime

func newAlarm(ring func()) alarm { return newGoAlarm(ring) }
