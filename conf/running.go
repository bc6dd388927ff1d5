package conf

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	runningFile = "daemon.json"
	maxRunning  = 64 << 10 // bytes
)

// Running is what a daemon writes into its data directory, so that tools on its machine find it. It is left there when the
// daemon dies without a stop: then nobody listens at URL.
type Running struct {
	PID       int    `json:"pid"`
	Serving   bool   `json:"serving"`        // false while the daemon waits for its cluster
	URL       string `json:"url"`            // where clients connect
	HTTP      string `json:"http,omitempty"` // HOST:PORT of health and metrics, "" for none
	Node      string `json:"node"`           // identifier
	Number    uint64 `json:"number"`         // in the cluster
	Name      string `json:"name"`
	Cluster   string `json:"cluster"`
	Clustered bool   `json:"clustered"` // other daemons can be with it, so that its zones and settings are the cluster's
}

// SaveRunning writes it into a data directory.
func SaveRunning(data string, r Running) error {
	content, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode where the daemon is: %w", err)
	}
	if err := writeFile(filepath.Join(data, runningFile), append(content, '\n'), 0o644); err != nil {
		return fmt.Errorf("write where the daemon is: %w", err)
	}
	return nil
}

// ReadRunning reads what SaveRunning wrote. An fs.ErrNotExist if no daemon serves, or none has.
func ReadRunning(data string) (Running, error) {
	path := filepath.Join(data, runningFile)
	content, err := readBounded(path, maxRunning)
	if err != nil {
		return Running{}, fmt.Errorf("read where the daemon is: %w", err)
	}
	var r Running
	if err := json.Unmarshal(content, &r); err != nil {
		return Running{}, fmt.Errorf("%s: %w: remove it, and start the daemon again", path, err)
	}
	return r, nil
}

// RemoveRunning says that the daemon serves no more.
func RemoveRunning(data string) error {
	if err := os.Remove(filepath.Join(data, runningFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove where the daemon was: %w", err)
	}
	return nil
}
