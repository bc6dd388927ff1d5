package interop

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
	"github.com/opencluster/oclocks/internal/e2e/daemons"
)

// docs are the pages whose shell blocks must run as they stand.
var docs = []string{"README.md", "docs/protocol.md", "docs/locks.md", "docs/configuration.md", "docs/security.md", "docs/operations.md", "docs/cluster.md"}

// TestDocumentedCommandsRun runs every block that is marked ```sh of a page, in their order, in one shell and an empty
// folder, with our commands and the nats CLI on the path. Blocks marked otherwise (console, text, make) are not run. Only
// the ports differ from what is written.
func TestDocumentedCommandsRun(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash here, and the blocks are written for it")
	}
	cli := natsCLI(t)
	for _, page := range docs {
		t.Run(page, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("..", "..", page))
			if err != nil {
				t.Fatal(err)
			}
			script := blocks(string(text), "sh")
			if script == "" {
				t.Skip("the page has no commands")
			}
			if _, err := exec.LookPath("curl"); err != nil && strings.Contains(script, "curl ") && !required() {
				t.Skip("there is no curl here, which the page's commands use")
			}
			runPage(t, script, filepath.Dir(cli))
		})
	}
}

// beforePage shows each command, and ends what a page that fails has left in the background.
const beforePage = `trap 'for job in $(jobs -p); do kill "$job"; done' EXIT
set -x
`

// runPage runs a page's script. A page that starts the daemon itself gets free ports for it, every other page a daemon.
func runPage(t *testing.T, script, natsDir string) {
	t.Helper()
	address, http := freeAddress(t), freeAddress(t)
	ports := strings.NewReplacer()
	switch {
	case regexp.MustCompile(`(?m)^oclocks-startup local .*&`).MatchString(script):
		port := freePorts(t)
		address = fmt.Sprint("127.0.0.1:", port+1)
		ports = strings.NewReplacer("--port 4221", fmt.Sprint("--port ", port), "127.0.0.1:4223", fmt.Sprint("127.0.0.1:", port+2),
			"127.0.0.1:4224", fmt.Sprint("127.0.0.1:", port+3))
	case !regexp.MustCompile(`(?m)^oclocks-daemon .*&`).MatchString(script):
		daemon := brokertest.Start(t, func(s *conf.Settings) { s.HTTP = http })
		address = strings.TrimPrefix(daemon.URL(), "nats://")
	}
	script = strings.NewReplacer("127.0.0.1:4222", address, "127.0.0.1:8222", http).Replace(ports.Replace(script))
	home := t.TempDir()
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", beforePage+script)
	cmd.Dir = home
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // lets the trap run
	cmd.WaitDelay = patience
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home+"/.config", "XDG_CACHE_HOME=", "TERM=dumb",
		"PATH="+strings.Join([]string{oclocksBin(t), natsDir, os.Getenv("PATH")}, string(os.PathListSeparator)),
		"NATS_URL=nats://"+address, "OCLOCKS_LISTEN="+address, "OCLOCKS_HTTP="+http)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	t.Log(out.String())
}

// TestProgramOfTheReadme runs the Go program that the README shows.
func TestProgramOfTheReadme(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "main.go")
	if err := os.WriteFile(file, []byte(blocks(string(text), "go")), 0o644); err != nil {
		t.Fatal(err)
	}
	daemon := brokertest.Start(t)
	cmd := exec.Command("go", "run", file)
	cmd.Env = append(os.Environ(), "NATS_URL="+daemon.URL(), "NATS_CONTEXT=", "NATS_CREDS=")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "shipping with fencing token") {
		t.Fatalf("%v\n%s", err, out)
	}
}

// blocks are the blocks of a page that are marked with the language, one after the other.
func blocks(text, language string) string {
	var b strings.Builder
	on := false
	for line := range strings.Lines(text) {
		switch fence := strings.TrimSpace(line); {
		case on && fence == "```":
			on = false
		case on:
			b.WriteString(line)
		case fence == "```"+language:
			on = true
		}
	}
	return b.String()
}

func TestBlocks(t *testing.T) {
	text := "a\n```sh\none\ntwo\n```\nb\n```console\n$ three\n```\n```sh\nfour\n```\n"
	if got := blocks(text, "sh"); got != "one\ntwo\nfour\n" {
		t.Errorf("got %q", got)
	}
}

// freePorts is a port after which those of three nodes of a local cluster are free.
func freePorts(t *testing.T) int {
	t.Helper()
	free := func(port int) bool {
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		return err == nil && l.Close() == nil
	}
	for port := 20000; port < 30000; port += 10 {
		if free(port+1) && free(port+2) && free(port+3) && free(port+101) && free(port+102) && free(port+103) {
			return port
		}
	}
	t.Fatal("no free ports")
	return 0
}

// freeAddress is an address of this machine on which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	ports, err := daemons.FreePorts(1)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint("127.0.0.1:", ports[0])
}
