package interop

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// natsCLIVersion is the stock CLI that the tests are written for.
const natsCLIVersion = "v0.3.0"

// installTimeout bounds one installation, downloads included.
const installTimeout = 8 * time.Minute

// required says that a tool which is missing is a failure and no reason to skip.
func required() bool { return os.Getenv("OCLOCKS_REQUIRE_INTEROP") == "1" }

// errSkip is why a tool is not there.
var errSkip = errors.New("set OCLOCKS_REQUIRE_INTEROP=1 to install it and run this test")

// need gives what install gave; without it the test is skipped, or fails where tools are required.
func need(t *testing.T, what string, install func() (string, error)) string {
	t.Helper()
	path, err := install()
	switch {
	case err == nil:
		return path
	case required():
		t.Fatalf("%s: %v", what, err)
	default:
		t.Skipf("%s is not here: %v", what, err)
	}
	return ""
}

// natsCLI is the path of the stock nats CLI.
func natsCLI(t *testing.T) string { return need(t, "the nats CLI "+natsCLIVersion, installNatsCLI) }

var installNatsCLI = sync.OnceValues(func() (string, error) {
	dir, err := cacheDir("natscli-" + natsCLIVersion)
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "nats")
	if isFile(binary) {
		return binary, nil
	}
	if !required() {
		return "", errSkip
	}
	// Its go.mod has replace directives, with which `go install` refuses it; a module that requires it builds it.
	scratch, err := os.MkdirTemp("", "natscli")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(scratch)
	half := filepath.Join(scratch, "nats")
	for _, args := range [][]string{
		{"go", "mod", "init", "scratch"},
		{"go", "get", "github.com/nats-io/natscli@" + natsCLIVersion},
		{"go", "build", "-mod=mod", "-o", half, "github.com/nats-io/natscli/nats"},
	} {
		if err := install(scratch, args...); err != nil {
			return "", err
		}
	}
	return binary, moveInto(half, binary)
})

// nodeModules is a folder with package.json's dependencies installed below node_modules.
func nodeModules(t *testing.T) string {
	return need(t, "the NATS client for Node", installNodeModules)
}

var installNodeModules = sync.OnceValues(func() (string, error) {
	if _, err := exec.LookPath("node"); err != nil {
		return "", fmt.Errorf("there is no Node.js: install node 20 or newer, and npm")
	}
	lock, err := os.ReadFile(filepath.Join("node", "package-lock.json"))
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(lock)
	dir, err := cacheDir("node-" + hex.EncodeToString(sum[:6]))
	if err != nil {
		return "", err
	}
	done := filepath.Join(dir, "installed")
	if isFile(done) {
		return dir, nil
	}
	if !required() {
		return "", errSkip
	}
	for _, name := range []string{"package.json", "package-lock.json"} {
		text, err := os.ReadFile(filepath.Join("node", name))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return "", err
		}
	}
	if err := install(dir, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"); err != nil {
		return "", err
	}
	return dir, os.WriteFile(done, nil, 0o644)
})

// oclocksBin is a folder with our own commands, built from this tree.
func oclocksBin(t *testing.T) string {
	t.Helper()
	dir, err := buildOclocks()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

var (
	buildOclocks = sync.OnceValues(func() (string, error) {
		var err error
		if binDir, err = os.MkdirTemp("", "oclocks-bin"); err != nil {
			return "", err
		}
		return binDir, install(filepath.Join("..", ".."), "go", "build", "-o", binDir+string(filepath.Separator), "./cmd/...")
	})
	binDir string // written once, by buildOclocks; removed by TestMain
)

func TestMain(m *testing.M) {
	code := m.Run()
	if binDir != "" {
		if err := os.RemoveAll(binDir); err != nil {
			fmt.Fprintln(os.Stderr, "remove the commands that were built:", err)
		}
	}
	os.Exit(code)
}

// install runs one step of an installation, and again if it fails, since a download may; its error has all that the step printed.
func install(dir string, args ...string) (err error) {
	for _, pause := range []time.Duration{0, 5 * time.Second, 30 * time.Second} {
		<-time.After(pause)
		if err = installOnce(dir, args); err == nil {
			return nil
		}
	}
	return err
}

func installOnce(dir string, args []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), installTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out.String())
	}
	return nil
}

func cacheDir(name string) (string, error) {
	base, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(base, "oclocks-interop", name)
	return dir, os.MkdirAll(dir, 0o755)
}

// moveInto puts a finished file into its place in one step, also from another file system.
func moveInto(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to+".new", text, 0o755); err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
