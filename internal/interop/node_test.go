package interop

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/opencluster/oclocks/conf"
	"github.com/opencluster/oclocks/internal/brokertest"
)

// The steps are in node/locks.test.mjs: a NATS client of another language and nothing of ours.

func TestNodeInAnOpenZone(t *testing.T) {
	modules := nodeModules(t)
	daemon := brokertest.Start(t, brokertest.WithZones(
		conf.Zone{Name: "default", Open: true, Role: conf.RoleAdmin, LockEvents: true}))
	runNode(t, modules, "NATS_URL="+daemon.URL(), "OCLOCKS_USER=anyone")
}

func TestNodeInAZoneWithUsers(t *testing.T) {
	modules := nodeModules(t)
	daemon := brokertest.Start(t, brokertest.WithZones(conf.Zone{Name: "shop", LockEvents: true}))
	creds, user, err := daemon.Auth().IssueUser("shop", "till-1", conf.RoleUser, 0)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "till-1.creds")
	if err := os.WriteFile(file, creds, 0o600); err != nil {
		t.Fatal(err)
	}
	runNode(t, modules, "NATS_URL="+daemon.URL(), "OCLOCKS_USER="+user, "NATS_CREDS="+file)
}

// runNode runs Node's own test runner on the scripts, beside the installed modules.
func runNode(t *testing.T, modules string, env ...string) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"package.json", "locks.test.mjs"} {
		text, err := os.ReadFile(filepath.Join("node", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(modules, "node_modules"), filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", "--test", "--test-timeout=25000", "--test-reporter=spec", "locks.test.mjs")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("node: %v\n%s", err, out.String())
	}
	t.Log(out.String())
}
