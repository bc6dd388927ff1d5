package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// product is the module whose daemon is built when none is named; with its own dependencies, not with those of this module.
const product = "github.com/opencluster/oclocks"

// Build builds this tree's daemon. remove takes it away again; those that run need it no more.
func Build(ctx context.Context) (path string, remove func(), err error) {
	dir, err := os.MkdirTemp("", "oclocks-bench")
	if err != nil {
		return "", nil, err
	}
	remove = func() { os.RemoveAll(dir) } // it is in the temporary directory
	path = filepath.Join(dir, "oclocks-daemon")
	tree, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", product).Output()
	if err != nil {
		remove()
		return "", nil, fmt.Errorf("find the product's tree: %w", err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-C", strings.TrimSpace(string(tree)), "-o", path, "./cmd/oclocks-daemon")
	if out, err := build.CombinedOutput(); err != nil {
		remove()
		return "", nil, fmt.Errorf("build the daemon: %w\n%s", err, out)
	}
	return path, remove, nil
}
