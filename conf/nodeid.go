package conf

import (
	"crypto/rand"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// nodeIDLen is the length of a node's identifier: 16 random bytes in base32.
const nodeIDLen = 26

var nodeIDEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NodeID is the identifier of the node whose data is in dataDir: 26 characters that are safe as a token of a NATS
// subject, random, made when it is first asked for and kept in the file node-id; the directory is made too. Without a
// directory it is another one each time.
func NodeID(dataDir string) (string, error) {
	if dataDir == "" {
		return newNodeID(), nil
	}
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return "", fmt.Errorf("make the data directory: %w", err)
	}
	path := filepath.Join(dataDir, "node-id")
	for range 2 {
		content, err := os.ReadFile(path)
		if err == nil {
			id := strings.TrimSpace(string(content))
			if err := CheckNodeID(id); err != nil {
				return "", fmt.Errorf("%s: %w: restore it, or remove it if this node has no journal", path, err)
			}
			return id, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("read the node's identifier: %w", err)
		}
		// Two daemons that start at the same time both read what the first one wrote.
		if err := createFile(path, []byte(newNodeID()+"\n"), secret); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", fmt.Errorf("write the node's identifier: %w", err)
		}
	}
	return "", fmt.Errorf("%s appears and disappears", path)
}

// CheckNodeID refuses what is not a node's identifier.
func CheckNodeID(id string) error {
	if raw, err := nodeIDEncoding.DecodeString(id); err != nil || len(raw) != 16 || len(id) != nodeIDLen {
		return fmt.Errorf("%q is not a node's identifier (%d characters of a-z and 2-7)", shorten(id), nodeIDLen)
	}
	return nil
}

func newNodeID() string { return strings.ToLower(rand.Text()) }
