package conf

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"
)

// ProbeProtocol is what Probe speaks after the TLS handshake, so that a daemon does not take it for another one.
const ProbeProtocol = "oclocks-probe"

// maxGreeting is the length of the longest line with which a NATS server says who it is, in bytes.
const maxGreeting = 64 << 10

// Found is what Probe finds at an address.
type Found struct {
	Node    string // identifier
	Cluster string
}

// Probe connects to another daemon's cluster_listen as a node does, and says who is there. The error says what is wrong,
// in words for people.
func Probe(ctx context.Context, address string, identity *Identity) (found Found, err error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	config := identity.TLS()
	config.NextProtos = []string{ProbeProtocol}
	d := tls.Dialer{NetDialer: &net.Dialer{}, Config: config}
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return Found{}, probeError(err)
	}
	defer func() { err = errors.Join(err, ignoreClosed(conn.Close())) }()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return Found{}, err
		}
	}
	line, err := readGreeting(conn)
	if err != nil {
		return Found{}, probeError(err)
	}
	var info struct {
		Name    string `json:"server_name"`
		Cluster string `json:"cluster"`
	}
	if err := json.Unmarshal(line, &info); err != nil {
		return Found{}, fmt.Errorf("no daemon answers there: %w", err)
	}
	return Found{Node: info.Name, Cluster: info.Cluster}, nil
}

// readGreeting reads the line in which a NATS server says who it is, and gives its JSON.
func readGreeting(conn net.Conn) ([]byte, error) {
	line, err := bufio.NewReaderSize(conn, maxGreeting).ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	rest, ok := strings.CutPrefix(string(line), "INFO ")
	if !ok {
		return nil, errors.New("no NATS server")
	}
	return []byte(rest), nil
}

// ignoreClosed: the other side may have closed the connection before.
func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		return nil
	}
	return err
}

func probeError(err error) error {
	var verification *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var timeout net.Error
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return errors.New("nobody listens there: is the daemon running, and is that its cluster_listen?")
	case errors.As(err, &verification):
		name := "unknown"
		if len(verification.UnverifiedCertificates) > 0 {
			name = verification.UnverifiedCertificates[0].Issuer.CommonName
		}
		return fmt.Errorf("it is of another cluster, called %s: its certificate is not of this one", shorten(name))
	case errors.As(err, &alert):
		return fmt.Errorf("it does not accept this node's certificate (%w): it is of another cluster, or one of the clocks is wrong", err)
	case errors.As(err, &record):
		return errors.New("it speaks no TLS: is that its cluster_listen, and not its listen?")
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %s: is it reachable from this machine?", dialTimeout.Truncate(time.Second))
	}
	return err
}
