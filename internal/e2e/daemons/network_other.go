//go:build !linux

package daemons

import "os/exec"

func unshare(*exec.Cmd) {}

func privateNames() error { return ErrNoNamespaces }
