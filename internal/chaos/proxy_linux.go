package chaos

import (
	"context"
	"fmt"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// foreign lets a socket have an address of another machine.
func foreign(_, _ string, c syscall.RawConn) (err error) {
	if controlErr := c.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_TRANSPARENT, 1)
	}); controlErr != nil {
		return controlErr
	}
	return err
}

func listenFor(address string) (net.Listener, error) {
	config := net.ListenConfig{Control: foreign}
	return config.Listen(context.Background(), "tcp4", address)
}

// dialFrom connects in the name of a host.
func dialFrom(ctx context.Context, host, to string) (net.Conn, error) {
	dialer := net.Dialer{Control: foreign, LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}}
	conn, err := dialer.DialContext(ctx, "tcp4", to)
	if err != nil {
		return nil, fmt.Errorf("connect in the name of %s: %w", host, err)
	}
	return conn, nil
}
