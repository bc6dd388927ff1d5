package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/opencluster/oclocks/broker"
	"github.com/opencluster/oclocks/client"
	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/internal/cli/ptytest"
	"github.com/opencluster/oclocks/internal/e2e/daemons"
)

// toolEnv makes this test's binary be the command.
const toolEnv = "OCLOCKS_TEST_STARTUP"

func TestMain(m *testing.M) {
	if os.Getenv(toolEnv) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// run gives what the command prints: on standard output, and with its error on the other one.
func run(t *testing.T, args ...string) (out string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := command()
	cmd.SetArgs(args)
	cmd.SetIn(strings.NewReader(""))
	cmd.SetOut(&stdout)
	cmd.SetErr(&stderr)
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), err
}

// fails says that the error holds all of want.
func fails(t *testing.T, want []string, args ...string) {
	t.Helper()
	_, err := run(t, args...)
	for _, w := range want {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("%s: got %v, want %q", strings.Join(args, " "), err, w)
		}
	}
}

// freeAddress is an address on which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	ports, err := daemons.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint("127.0.0.1:", ports[0])
}

// serve starts a daemon with a configuration file, as oclocks-daemon does.
func serve(t *testing.T, config string) *broker.Daemon {
	t.Helper()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	conf.AddFlags(flags)
	if err := flags.Set(conf.ConfigFlag, config); err != nil {
		t.Fatal(err)
	}
	settings, err := conf.Load(flags, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	d, err := broker.Start(ctx, broker.Config{Settings: settings, Logger: brokertest.Logger(t), LameDuck: 100 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { brokertest.Stop(t, d) })
	return d
}

// TestFromNothingToACluster is what the help says: init, token, join.
func TestFromNothingToACluster(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	out, err := run(t, "init", "--data", one, "--node", "n1", "--listen", freeAddress(t), "--cluster-listen", freeAddress(t), "--http", "off",
		"--cluster", "shop", "--zone", "orders", "--user", "boss")
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(one, "oclocks.yaml")
	creds := filepath.Join(one, "orders-boss.creds")
	for _, want := range []string{config, creds, "oclocks-daemon --config " + config} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	fails(t, []string{"--data", "belongs to a cluster"}, "init", "--data", one, "--cluster-listen", freeAddress(t))
	fails(t, []string{"none runs", "--at"}, "token", "--config", config)
	first := serve(t, config)

	token, err := run(t, "token", "--config", config, "--ttl", "5m")
	if err != nil || strings.Count(token, "\n") != 1 {
		t.Fatalf("the token is to be alone on the output: %q, %v", token, err)
	}
	out, err = run(t, "token", "--data", one, "--json", "--at", "nats://192.0.2.1:4222")
	var invitation struct{ URLs []string }
	if err != nil || json.Unmarshal([]byte(out), &invitation) != nil || len(invitation.URLs) != 1 || invitation.URLs[0] != "nats://192.0.2.1:4222" {
		t.Errorf("got %s, %v", out, err)
	}
	fails(t, []string{"1m", "168h"}, "token", "--config", config, "--ttl", "1s")

	file := filepath.Join(dir, "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	listen := freeAddress(t)
	out, err = run(t, "join", "--token", "@"+file, "--data", two, "--node", "n2", "--listen", listen, "--cluster-listen", freeAddress(t), "--http", "off")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out, "shop") || !strings.Contains(out, "oclocks-daemon --config "+filepath.Join(two, "oclocks.yaml")) {
		t.Errorf("got %s", out)
	}
	fails(t, []string{"used by another node", "oclocks-startup token"}, "join", "--token", "@"+file, "--data", filepath.Join(dir, "three"),
		"--cluster-listen", freeAddress(t), "--listen", freeAddress(t), "--http", "off")
	serve(t, filepath.Join(two, "oclocks.yaml"))

	// The first user works through the second node.
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c, err := client.Connect(ctx, "nats://"+listen, client.WithCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(ctx)
	claim, err := c.Mutex("orders/1").Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := claim.Release(ctx); err != nil {
		t.Error(err)
	}
	if _, err := client.Connect(ctx, first.URL()); err == nil {
		t.Error("somebody without credentials is let in")
	}
}

func TestWhatIsMissingIsSaidAtOnce(t *testing.T) {
	t.Setenv(tokenEnv, "")
	dir := t.TempDir()
	fails(t, []string{"--data and --cluster-listen: is missing", "on a terminal"}, "init")
	fails(t, []string{"--token", "oclocks-startup token"}, "join")
	fails(t, []string{"--data"}, "token")
	used := freeAddress(t)
	l, err := net.Listen("tcp", used)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	good := []string{"init", "--data", filepath.Join(dir, "d"), "--http", "off", "--listen", freeAddress(t)}
	fails(t, []string{"--cluster-listen", "in use"}, append(good, "--cluster-listen", used)...)
	fails(t, []string{"--cluster-listen", "HOST:PORT"}, append(good, "--cluster-listen", "here")...)
	fails(t, []string{"--zone"}, append(good, "--cluster-listen", freeAddress(t), "--zone", "a b")...)
	fails(t, []string{"--user"}, append(good, "--cluster-listen", freeAddress(t), "--user", "a b")...)
	fails(t, []string{"--cluster"}, append(good, "--cluster-listen", freeAddress(t), "--cluster", "a b")...)
	fails(t, []string{"--listen", "--open"}, "init", "--data", filepath.Join(dir, "d"), "--http", "off", "--listen", "0.0.0.0:0",
		"--cluster-listen", freeAddress(t), "--open")
	fails(t, []string{"join token"}, "join", "--token", "nonsense", "--data", filepath.Join(dir, "d"))
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("something was written: %v, %v", left, err)
	}
	fails(t, []string{"--nodes"}, "local", "--nodes", "0")
	fails(t, []string{"make build"}, "local", "--daemon", "/nowhere/oclocks-daemon")
}

// TestNothingIsOverwritten: also not when only one of the files is there.
func TestNothingIsOverwritten(t *testing.T) {
	dir := t.TempDir()
	args := func(more ...string) []string {
		return append([]string{"init", "--data", filepath.Join(dir, "d"), "--http", "off", "--listen", freeAddress(t), "--cluster-listen", freeAddress(t)}, more...)
	}
	file := filepath.Join(dir, "mine")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	fails(t, []string{file, "--config"}, args("--config", file)...)
	fails(t, []string{file, "--out"}, args("--user", "u", "--out", file)...)
	if content, err := os.ReadFile(file); err != nil || string(content) != "mine" {
		t.Errorf("got %q, %v", content, err)
	}
	// What failed once succeeds then.
	if _, err := run(t, args("--user", "u")...); err != nil {
		t.Error(err)
	}
}

// TestInitAsks: what the command line leaves out is asked for, and a wrong answer is asked for again.
func TestInitAsks(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command(exe, "init", "--http", "off", "--cluster", "shop")
	cmd.Env = append(os.Environ(), toolEnv+"=1")
	s := ptytest.Start(t, cmd, 20*time.Second)
	answer := func(question, answer string) {
		t.Helper()
		s.Shows(question)
		s.Type(answer + "\n")
	}
	answer("Data directory [/var/lib/oclocks]: ", filepath.Join(dir, "d"))
	answer("Configuration file to write ["+filepath.Join(dir, "d", "oclocks.yaml")+"]: ", "")
	answer("Name of this node [", "n1")
	answer("Where it is", "eu/fra")
	answer("Address for the other nodes [", "nonsense")
	s.Shows("HOST:PORT")
	answer("Address for the other nodes [", freeAddress(t))
	answer("Address for clients [127.0.0.1:4222]: ", freeAddress(t))
	answer("First zone", "")
	answer("First user", "-")
	s.Shows("oclocks-startup token --config")
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "d", "oclocks.yaml"))
	for _, want := range []string{"cluster: shop", "node: n1", "location: eu/fra", "name: default", "http: off"} {
		if err != nil || !strings.Contains(string(content), want) {
			t.Errorf("%q is not in %s, %v", want, content, err)
		}
	}
}

func TestFindDaemon(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, daemonName)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	if got, err := findDaemon(""); err != nil || got != path {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := findDaemon(path); err != nil || got != path {
		t.Errorf("got %s, %v", got, err)
	}
}
