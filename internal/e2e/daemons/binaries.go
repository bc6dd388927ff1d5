package daemons

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// BinVariable is the environment variable with a directory that has the commands already.
const BinVariable = "OCLOCKS_E2E_BIN"

// Build builds the commands of this repository into dir. The working directory must be in the repository.
func Build(dir string) error {
	root, err := root()
	if err != nil {
		return err
	}
	build := exec.Command("go", "build", "-o", dir+string(filepath.Separator), "./cmd/...")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the commands: %w\n%s", err, out)
	}
	return nil
}

// root is the repository's directory: the first one upwards that has a go.mod.
func root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("find the repository: there is no go.mod in the working directory, nor above it")
		}
		dir = filepath.Dir(dir)
	}
}
