package inside

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"time"
)

// info is what we want to know of the server's INFO.
type info struct {
	Nonce      string `json:"nonce"`
	MaxPayload int    `json:"max_payload"`
	Headers    bool   `json:"headers"`
}

// hello is the CONNECT of a client.
type hello struct {
	Verbose      bool   `json:"verbose"`
	Pedantic     bool   `json:"pedantic"`
	JWT          string `json:"jwt"`
	Signature    string `json:"sig"`
	Name         string `json:"name"`
	Lang         string `json:"lang"`
	Version      string `json:"version"`
	Protocol     int    `json:"protocol"`
	Echo         bool   `json:"echo"`
	Headers      bool   `json:"headers"`
	NoResponders bool   `json:"no_responders"`
}

// connect makes the connection anew, with all subscriptions.
func (c *Conn) connect() (*input, error) {
	nc, err := c.opts.Dial()
	if err != nil {
		return nil, err
	}
	in := &input{nc: nc, buf: make([]byte, firstInput)}
	server, err := c.greet(nc, in)
	if err != nil {
		nc.Close()
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		nc.Close()
		return nil, ErrClosed
	}
	c.nc, c.limit, c.buf, c.pongs = nc, server.MaxPayload, c.buf[:0], nil
	c.subsMu.RLock()
	defer c.subsMu.RUnlock()
	for _, s := range c.subs { // order: each stands for itself
		c.buf = s.appendSub(c.buf)
	}
	c.wake()
	return in, nil
}

// greet says who we are and waits until the server agrees.
func (c *Conn) greet(nc net.Conn, in *input) (*info, error) {
	if err := nc.SetDeadline(time.Now().Add(handshakeTime)); err != nil {
		return nil, err
	}
	line, err := in.line()
	if err != nil {
		return nil, err
	}
	text, ok := strings.CutPrefix(string(line), "INFO ")
	server := &info{}
	if err := json.Unmarshal([]byte(text), server); !ok || err != nil || !server.Headers || server.MaxPayload <= 0 {
		return nil, fmt.Errorf("%w: it begins with %.40q", ErrProtocol, line)
	}
	sig, err := c.opts.Sign([]byte(server.Nonce))
	if err != nil {
		return nil, fmt.Errorf("sign the server's nonce: %w", err)
	}
	options, err := json.Marshal(hello{
		JWT: c.opts.JWT, Signature: base64.RawURLEncoding.EncodeToString(sig), Name: c.opts.Name, Lang: "go", Version: "1",
		Protocol: 1, Echo: true, Headers: true,
	})
	if err != nil {
		return nil, err
	}
	if _, err := fmt.Fprintf(nc, "CONNECT %s\r\nPING\r\n", options); err != nil {
		return nil, fmt.Errorf("say who we are: %w", err)
	}
	for {
		if line, err = in.line(); err != nil {
			return nil, err
		}
		switch kind, rest, _ := strings.Cut(string(line), " "); kind {
		case "PONG":
			return server, nc.SetDeadline(time.Time{})
		case "-ERR":
			return nil, fmt.Errorf("%w: %s", ErrServer, rest)
		case "+OK", "INFO":
		default:
			return nil, fmt.Errorf("%w: it answers with %.40q", ErrProtocol, line)
		}
	}
}
