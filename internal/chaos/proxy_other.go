//go:build !linux

package chaos

import (
	"context"
	"net"

	"github.com/opencluster/oclocks/internal/e2e/daemons"
)

func listenFor(string) (net.Listener, error) { return nil, daemons.ErrNoNamespaces }

func dialFrom(context.Context, string, string) (net.Conn, error) { return nil, daemons.ErrNoNamespaces }
