package rig

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// PlainCommand makes this program one of three plain NATS servers with a responder in the process.
const PlainCommand = "plain-nats"

// AcquireText is an acquire as the Go client sends it.
const AcquireText = `{"name":"orders/4711","session":"q83vEjRWeJqrze8SNFZ4mqvN7xI0Vniaq83vEjRWeJqrze8SNFZ4mqvN7xI0Vnia",` +
	`"request":4711,"done":4709,"wait":"10s","ttl":"30s"}`

const plainServing = "plain server serves"

// Plain is a cluster of three NATS servers that are processes of their own, without TLS. On the i-th one a responder inside
// of the process sends back what it gets at echo.i: the yardstick of what a request and its reply cost.
type Plain struct {
	dir     string
	clients []string
	Servers []*Child
}

// StartPlain returns when each responder is reached from each server.
func StartPlain(ctx context.Context) (p *Plain, err error) {
	return StartServers(ctx, PlainCommand, nil)
}

// StartServers starts such servers by a command of this program that calls ServeMore, with further environment and arguments.
func StartServers(ctx context.Context, command string, env []string, more ...string) (_ *Plain, err error) {
	p := &Plain{}
	if p.dir, err = os.MkdirTemp("", "oclocks-bench"); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.Stop()
		}
	}()
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	const n = 3
	addresses, err := FreeAddresses(2 * n)
	if err != nil {
		return nil, err
	}
	p.clients = addresses[:n]
	for i := range n {
		args := []string{command, strconv.Itoa(i), addresses[i], addresses[n+i], strings.Join(addresses[n:], ",")}
		cmd := exec.Command(self, append(args, more...)...)
		cmd.Env = append(os.Environ(), env...)
		c, err := Spawn(cmd, filepath.Join(p.dir, fmt.Sprint(i, ".log")), plainServing)
		if err != nil {
			return nil, fmt.Errorf("start a plain NATS server: %w", err)
		}
		p.Servers = append(p.Servers, c)
	}
	for _, c := range p.Servers {
		if err := c.Serving(ctx); err != nil {
			return nil, err
		}
	}
	return p, p.reach(ctx)
}

// reach waits until each responder is reached from each server.
func (p *Plain) reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	for i := range p.clients {
		nc, err := nats.Connect(p.URL(i))
		if err != nil {
			return fmt.Errorf("connect to a plain NATS server: %w", err)
		}
		defer nc.Close() //nolint:gocritic // one for each server
		for k := range p.clients {
			if err := Await(ctx, func() (bool, error) {
				_, err := nc.RequestWithContext(ctx, EchoSubject(k), nil)
				if errors.Is(err, nats.ErrNoResponders) {
					return false, nil
				}
				return true, err
			}); err != nil {
				return fmt.Errorf("reach a responder: %w", err)
			}
		}
	}
	return nil
}

// URL is the address of the i-th server for clients.
func (p *Plain) URL(i int) string { return "nats://" + p.clients[i] }

// Stop kills the servers.
func (p *Plain) Stop() {
	for _, c := range p.Servers {
		c.Kill()
	}
	os.RemoveAll(p.dir) // it is in the temporary directory
}

// EchoSubject is where the i-th responder listens.
func EchoSubject(i int) string { return "echo." + strconv.Itoa(i) }

// Echo is one request to the responder of a server.
func Echo(nc *nats.Conn, i int) error {
	if _, err := nc.Request(EchoSubject(i), []byte(AcquireText), Patience); err != nil {
		return fmt.Errorf("echo: %w", err)
	}
	return nil
}

// ServePlain is the process of one plain server: number, client address, route address, all route addresses.
func ServePlain(args []string) error {
	return ServeMore(args, func(*nats.Conn, int, []string) error { return nil })
}

// ServeMore is ServePlain, and more begins on its connection what it is given further arguments for.
func ServeMore(args []string, more func(nc *nats.Conn, number int, args []string) error) error {
	if len(args) < 4 {
		return errors.New("expected a number, two addresses and a list")
	}
	number, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	s, err := StartNATS("plain", args, &server.Options{NoLog: true})
	if err != nil {
		return err
	}
	nc, err := nats.Connect("", nats.InProcessServer(s))
	if err != nil {
		return fmt.Errorf("connect to the plain NATS server: %w", err)
	}
	if _, err := nc.Subscribe(EchoSubject(number), func(m *nats.Msg) {
		if err := m.Respond(m.Data); err != nil {
			nc.Close() // the requests fail then
		}
	}); err != nil {
		return err
	}
	if err := more(nc, number, args[4:]); err != nil {
		return err
	}
	if err := nc.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, plainServing)
	s.WaitForShutdown()
	return nil
}

// StartNATS starts one NATS server of a cluster in this process, and waits until it is ready. args begin with its number, its client
// address, its route address and all route addresses; whatever else it is to be is in opts.
func StartNATS(cluster string, args []string, opts *server.Options) (*server.Server, error) {
	client, err := net.ResolveTCPAddr("tcp", args[1])
	if err != nil {
		return nil, err
	}
	route, err := net.ResolveTCPAddr("tcp", args[2])
	if err != nil {
		return nil, err
	}
	opts.ServerName, opts.Host, opts.Port = cluster+"-"+args[0], "127.0.0.1", client.Port
	opts.Cluster = server.ClusterOpts{Name: cluster, Host: "127.0.0.1", Port: route.Port}
	for other := range strings.SplitSeq(args[3], ",") {
		if other != args[2] {
			opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats", Host: other})
		}
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return nil, fmt.Errorf("make the NATS server %s: %w", opts.ServerName, err)
	}
	s.Start()
	if !s.ReadyForConnections(Patience) {
		return nil, fmt.Errorf("the NATS server %s is not ready after %v", opts.ServerName, Patience)
	}
	return s, nil
}
