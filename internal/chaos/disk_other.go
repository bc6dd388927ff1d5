//go:build !linux

package chaos

import "github.com/opencluster/oclocks/internal/e2e/daemons"

func mountSmall(string) error { return daemons.ErrNoNamespaces }

func unmount(string) {}
